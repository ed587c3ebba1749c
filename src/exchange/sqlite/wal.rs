//! The write-ahead log: pages that were committed and are not yet in the file.
//!
//! A frame counts if its salts are those of the log and its checksum continues that of the frames
//! before it; what follows the last frame that ends a transaction is no part of the database yet.

use super::long;

const HEADER: usize = 32;
const FRAME: usize = 24;

/// Puts the committed pages of a log where they belong. A log that is none changes nothing.
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
    // Only as many pages as the log and the file can fill are ever made.
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

/// The page size of a log, and whether its checksums read the greatest byte first.
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
