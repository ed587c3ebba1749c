//! Write-ahead log: committed pages that are not yet in the database file.
//!
//! A frame is valid if its salts match the header and its checksum continues that of the previous
//! frames. Frames after the last commit frame are ignored.

use super::long;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// Writes the committed pages of a log into the database. An invalid log changes nothing.
pub(super) fn replay(database: &mut Vec<u8>, log: &[u8]) {
    let Some((page_size, big)) = opened(log) else {
        return;
    };
    let salts = &log[16..24];
    let mut sums = checksum(&log[..24], big, (0, 0));
    if Some(sums) != long(log, 24).zip(long(log, 28)) {
        return;
    }
    let mut pages: Vec<(usize, &[u8])> = Vec::new();
    let mut committed = (0, 0);
    for frame in log[HEADER..].chunks_exact(FRAME + page_size) {
        let (header, page) = frame.split_at(FRAME);
        if &header[8..16] != salts {
            break;
        }
        sums = checksum(page, big, checksum(&header[..8], big, sums));
        let number = long(header, 0).unwrap_or_default() as usize;
        if Some(sums) != long(header, 16).zip(long(header, 20)) || number == 0 {
            break;
        }
        pages.push((number, page));
        let size = long(header, 4).unwrap_or_default() as usize;
        if size > 0 {
            committed = (pages.len(), size);
        }
    }
    let (count, size) = committed;
    if count == 0 {
        return;
    }
    // Limits the size to the pages that the file and the log can fill.
    let known = database.len() / page_size + count;
    let size = size.min(known);
    database.resize(size * page_size, 0);
    for (number, page) in &pages[..count] {
        let at = (number - 1) * page_size;
        if let Some(place) = database.get_mut(at..at + page_size) {
            place.copy_from_slice(page);
        }
    }
}

/// Page size of a log, and `true` for big-endian checksums.
fn opened(log: &[u8]) -> Option<(usize, bool)> {
    let magic = long(log, 0)?;
    let page_size = long(log, 8)? as usize;
    let is_log = matches!(magic, 0x377f_0682 | 0x377f_0683) && log.len() >= HEADER;
    let is_size = page_size.is_power_of_two() && (512..=65_536).contains(&page_size);
    (is_log && is_size).then_some((page_size, magic & 1 == 1))
}

fn checksum(bytes: &[u8], big: bool, (mut a, mut b): (u32, u32)) -> (u32, u32) {
    let word = |w: &[u8]| {
        let w = [w[0], w[1], w[2], w[3]];
        if big {
            u32::from_be_bytes(w)
        } else {
            u32::from_le_bytes(w)
        }
    };
    for pair in bytes.chunks_exact(8) {
        a = a.wrapping_add(word(&pair[..4])).wrapping_add(b);
        b = b.wrapping_add(word(&pair[4..])).wrapping_add(a);
    }
    (a, b)
}
