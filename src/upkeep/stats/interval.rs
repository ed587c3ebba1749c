//! 95 % confidence intervals.
//!
//! Shares: Wilson's score interval, and for a difference Newcombe's hybrid of two such intervals
//! (Newcombe 1998, method 10). Both also hold for small counts and for shares near 0 and 1. Means:
//! Welch's interval, which does not assume equal variances.
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

/// Interval of the first share minus the second, each given as `(count, of)`.
pub(crate) fn difference_of_shares(a: (u64, u64), b: (u64, u64)) -> Option<[f64; 2]> {
    let ([low_a, high_a], [low_b, high_b]) = (share(a.0, a.1)?, share(b.0, b.1)?);
    let (p, q) = (a.0 as f64 / a.1 as f64, b.0 as f64 / b.1 as f64);
    let below = ((p - low_a).powi(2) + (high_b - q).powi(2)).sqrt();
    let above = ((high_a - p).powi(2) + (q - low_b).powi(2)).sqrt();
    Some([p - q - below, p - q + above])
}

/// Interval of the first mean minus the second; `None` if either has fewer than two values.
pub(crate) fn difference_of_means(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    let (mean_a, error_a) = moments(a)?;
    let (mean_b, error_b) = moments(b)?;
    let error = error_a + error_b;
    let difference = mean_a - mean_b;
    if error <= 0.0 {
        return Some([difference, difference]);
    }
    let part = |error: f64, n: usize| error * error / (n as f64 - 1.0);
    let freedom = error * error / (part(error_a, a.len()) + part(error_b, b.len()));
    let half = t(freedom) * error.sqrt();
    Some([difference - half, difference + half])
}

/// Mean, and the square of its standard error; `None` for fewer than two values.
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((mean, spread / n))
}

/// Quantile of Student's distribution at 97.5 %, by the first terms of its expansion around the
/// normal one. Accurate to a thousandth from nine degrees of freedom.
fn t(freedom: f64) -> f64 {
    let (z, v) = (Z, freedom.max(1.0));
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / v.powi(2) + third / v.powi(3)
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
        // Newcombe 1998: 81 of 263, and 56 of 70 against 48 of 80.
        near(share(81, 263), [0.2553, 0.3662]);
        near(share(0, 20), [0.0, 0.1611]);
        near(share(20, 20), [0.8389, 1.0]);
        near(difference_of_shares((56, 70), (48, 80)), [0.0524, 0.3339]);
        near(difference_of_shares((0, 10), (0, 10)), [-0.2775, 0.2775]);
        assert_eq!(share(0, 0), None);
        for (freedom, expected) in [(9.0, 2.2622), (20.0, 2.0860), (1e9, 1.9600)] {
            assert!(
                (t(freedom) - expected).abs() < 1e-3,
                "{freedom}: {}",
                t(freedom)
            );
        }
    }

    /// Deterministic pseudo-random numbers.
    struct Dice(u64);

    impl Dice {
        fn next(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(self.0 >> 33).unwrap()) / f64::from(1_u32 << 31)
        }
    }

    #[test]
    fn a_planted_effect_is_covered_as_often_as_promised() {
        let mut dice = Dice(7);
        for effect in [0.0, 0.35] {
            let (mut shares, mut means) = (0, 0);
            for _ in 0..1_000 {
                let mut drawn = |p: f64, n: u64| (0..n).filter(|_| dice.next() < p).count() as u64;
                let (a, b) = ((drawn(0.2 + effect, 20), 20), (drawn(0.2, 180), 180));
                let [low, high] = difference_of_shares(a, b).unwrap();
                shares += i32::from(low <= effect && effect <= high);
                let mut steps = |by: f64, n: u64| -> Vec<f64> {
                    (0..n).map(|_| 1.0 + by + 6.0 * dice.next()).collect()
                };
                let (a, b) = (steps(effect * 10.0, 20), steps(0.0, 180));
                let [low, high] = difference_of_means(&a, &b).unwrap();
                means += i32::from(low <= effect * 10.0 && effect * 10.0 <= high);
            }
            for covered in [shares, means] {
                assert!((925..=985).contains(&covered), "{effect}: {shares} {means}");
            }
        }
    }
}
