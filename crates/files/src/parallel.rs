//! Parallel work on all processors, if there is enough of it.

use std::num::NonZero;
use std::sync::{Mutex, OnceLock};
use std::thread;

/// Number of threads. Cached, because asking the system takes longer than some of the work.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Applies `work` to each item and returns the results in order. Threads take the next item as they
/// finish, so items of different size keep all busy. Runs on one thread unless `is_much`.
pub fn each<T: Send, R: Send>(
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
    // No code panics while it holds the lock.
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
