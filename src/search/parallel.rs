//! Work side by side on all processors, where it is enough to be worth it.

use std::num::NonZero;
use std::sync::{Mutex, OnceLock};
use std::thread;

/// How many threads run at the same time. Asking the system takes longer than some of the work.
pub(super) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// What the work makes of each of the items, in their order. Who is done takes the next one, so items
/// of different size keep all busy.
pub(super) fn each<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    is_much: bool,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let items: Vec<T> = items.into_iter().collect();
    let threads = if is_much {
        processors().min(items.len())
    } else {
        1
    };
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let mut done: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let left = Mutex::new(items.into_iter().zip(&mut done));
    // Nothing happens under the lock that could leave it poisoned.
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let toil = || {
        while let Some((item, place)) = next() {
            *place = Some(work(item));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(toil);
        }
        toil();
    });
    drop(left);
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for is_much in [false, true] {
            let squares = each(0..1_000u64, is_much, |x| x * x);
            assert!(squares.iter().zip(0..).all(|(square, x)| *square == x * x));
            assert_eq!(squares.len(), 1_000);
            assert_eq!(each([0; 0], is_much, |x| x), [0; 0]);
        }
    }
}
