//! 95 % confidence intervals of shares.
//!
//! Shares: Wilson's score interval, which also holds for small counts and for shares near 0 and 1.
#![expect(clippy::cast_precision_loss, reason = "counts of what happened stay far below 2^52")]

/// Quantile of the normal distribution at 97.5 %.
const Z: f64 = 1.959_963_984_540_054;

/// Interval of a share, `count` of `of`; `None` if `of` is 0.
pub(crate) fn share(count: u64, of: u64) -> Option<[f64; 2]> {
    if of == 0 {
        return None;
    }
    let (n, p) = (of as f64, count as f64 / of as f64);
    let middle = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    Some([
        ((middle - half) / scale).max(0.0),
        ((middle + half) / scale).min(1.0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<[f64; 2]>, expected: [f64; 2]) {
        let found = found.unwrap();
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 6e-4, "{found:?} {expected:?}");
        }
    }

    #[test]
    fn intervals_are_those_of_the_literature() {
        // Newcombe 1998: 81 of 263.
        near(share(81, 263), [0.2553, 0.3662]);
        near(share(0, 20), [0.0, 0.1611]);
        near(share(20, 20), [0.8389, 1.0]);
        assert_eq!(share(0, 0), None);
    }
}
