//! Results of the experiment: hints and rules that were shown against those withheld.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::model::{Execution, Outcome, Trial};

use super::interval;

/// Minimum size of each group for a result.
const LEAST: usize = 10;

/// Comparison of the shown group with the withheld group.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Name of the measure.
    pub measure: &'static str,
    /// Unit that is counted.
    pub unit: &'static str,
    /// Size and value of the shown group.
    pub shown: Arm,
    /// Size and value of the withheld group.
    pub withheld: Arm,
    /// Withheld minus shown: above 0, memory helps. `None` with too little data.
    pub difference: Option<f64>,
    /// 95 % interval of the difference; one that contains 0 proves nothing.
    pub interval: Option<[f64; 2]>,
    /// Method of the interval.
    pub method: &'static str,
    /// Reason for a missing difference; `None` with enough data.
    pub too_little: Option<String>,
}

/// Group of the experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Arm {
    /// Number of cases.
    pub count: usize,
    /// Share or mean; `None` for an empty group.
    pub value: Option<f64>,
}

/// Outcome of an error in one session: all its lines of the hint log together.
#[derive(Debug, Default)]
struct Error {
    withheld: bool,
    repeats: u64,
    steps: u64,
}

/// Compares errors in sessions during an experiment; `None` if there was none.
pub(crate) fn of_hints(trials: &[Trial]) -> Option<[Comparison; 2]> {
    let mut errors: BTreeMap<(&str, &str), Error> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.share > 0.0) {
        match errors.entry((&trial.session, &trial.error_key)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Error {
                    withheld: trial.withheld,
                    repeats: trial.repeats,
                    steps: trial.steps,
                });
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                // The error came back after its recovery.
                let error = entry.get_mut();
                error.repeats += trial.repeats + 1;
                error.steps += trial.steps;
            }
        }
    }
    if errors.is_empty() {
        return None;
    }
    let values = |withheld: bool, value: &dyn Fn(&Error) -> f64| -> Vec<f64> {
        let arm = errors.values().filter(|error| error.withheld == withheld);
        arm.map(value).collect()
    };
    let repeated = |error: &Error| if error.repeats > 0 { 1.0 } else { 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "steps of a session stay far below 2^52")]
    let steps = |error: &Error| error.steps as f64;
    let unit = "error in a session";
    Some([
        shares(
            "repeated failures",
            unit,
            &values(false, &repeated),
            &values(true, &repeated),
        ),
        compared(
            "steps until it was overcome or given up",
            unit,
            &values(false, &steps),
            &values(true, &steps),
        ),
    ])
}

/// Runs in an experiment, which are read one by one.
#[derive(Debug, Default)]
pub(crate) struct Executions {
    shown: Vec<String>,
    withheld: Vec<String>,
    rejected: HashSet<String>,
}

impl Executions {
    pub(crate) fn take(&mut self, execution: &Execution) {
        if execution
            .experiment_withhold
            .is_none_or(|share| share <= 0.0)
            || execution.outcome == Outcome::Error
        {
            return;
        }
        let id = &execution.execution_id;
        let times = |ids: &[String]| vec![id.clone(); ids.len()];
        self.shown.extend(times(&execution.reflexions_injected));
        self.withheld.extend(times(&execution.reflexions_withheld));
        if execution.outcome == Outcome::Rejected {
            self.rejected.insert(id.clone());
        }
    }

    /// Compares the rules of runs in an experiment; `None` if there was none.
    pub(crate) fn compare(&self, corrected: &HashMap<String, u64>) -> Option<Comparison> {
        if self.shown.is_empty() && self.withheld.is_empty() {
            return None;
        }
        let wrong = |ids: &[String]| -> Vec<f64> {
            let is_wrong = |id: &String| corrected.contains_key(id) || self.rejected.contains(id);
            ids.iter()
                .map(|id| if is_wrong(id) { 1.0 } else { 0.0 })
                .collect()
        };
        let measure = "corrected or rejected";
        let unit = "rule in an execution";
        Some(shares(
            measure,
            unit,
            &wrong(&self.shown),
            &wrong(&self.withheld),
        ))
    }
}

fn shares(
    measure: &'static str,
    unit: &'static str,
    shown: &[f64],
    withheld: &[f64],
) -> Comparison {
    let counts = |values: &[f64]| {
        let count = values.iter().filter(|value| **value > 0.0).count();
        (count as u64, values.len() as u64)
    };
    let interval = interval::difference_of_shares(counts(withheld), counts(shown));
    comparison((measure, unit, "Newcombe, 95 %"), shown, withheld, interval)
}

fn compared(
    measure: &'static str,
    unit: &'static str,
    shown: &[f64],
    withheld: &[f64],
) -> Comparison {
    let interval = interval::difference_of_means(withheld, shown);
    comparison((measure, unit, "Welch, 95 %"), shown, withheld, interval)
}

fn comparison(
    (measure, unit, method): (&'static str, &'static str, &'static str),
    shown: &[f64],
    withheld: &[f64],
    interval: Option<[f64; 2]>,
) -> Comparison {
    let arm = |values: &[f64]| Arm {
        count: values.len(),
        value: super::mean(values),
    };
    let (shown, withheld) = (arm(shown), arm(withheld));
    let enough = shown.count >= LEAST && withheld.count >= LEAST;
    let difference = withheld.value.zip(shown.value).map(|(a, b)| a - b);
    Comparison {
        measure,
        unit,
        shown,
        withheld,
        difference: difference.filter(|_| enough),
        interval: interval.filter(|_| enough),
        method,
        too_little: (!enough).then(|| {
            format!(
                "too little data: {} shown and {} withheld, {LEAST} of each are needed",
                shown.count, withheld.count
            )
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(session: usize, withheld: bool, repeats: u64) -> Trial {
        Trial {
            session: session.to_string(),
            error_key: "E".to_owned(),
            share: 0.5,
            withheld,
            repeats,
            steps: 2 + 3 * repeats,
            ..Trial::default()
        }
    }

    #[test]
    fn too_little_data_says_so() {
        let trials: Vec<Trial> = (0..20).map(|n| trial(n, n < 9, 1)).collect();
        let [repeated, steps] = of_hints(&trials).unwrap();
        for comparison in [repeated, steps] {
            assert_eq!((comparison.difference, comparison.interval), (None, None));
            let said = comparison.too_little.unwrap();
            assert!(said.contains("11 shown and 9 withheld"), "{said}");
        }
        assert_eq!(of_hints(&[]), None);
        let before = Trial {
            share: 0.0,
            ..trial(1, false, 1)
        };
        assert_eq!(of_hints(&[before]), None);
    }

    #[test]
    fn an_error_that_comes_back_counts_once_and_as_repeated() {
        let mut trials: Vec<Trial> = (0..24).map(|n| trial(n, n % 2 == 0, 0)).collect();
        trials.push(trial(0, true, 0));
        let [repeated, steps] = of_hints(&trials).unwrap();
        assert_eq!(
            (repeated.withheld.count, repeated.shown.value),
            (12, Some(0.0))
        );
        assert_eq!(repeated.withheld.value, Some(1.0 / 12.0));
        assert_eq!(steps.withheld.value, Some(26.0 / 12.0));
    }
}
