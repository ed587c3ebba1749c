//! Log of the operator.

use std::sync::Arc;

/// Receiver of log lines for the operator.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;
