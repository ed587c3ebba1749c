//! JSON documents from a URL, such as a key set.

use std::time::Duration;

use serde_json::Value;

use super::body::Body;
use super::client::client;

/// Fetches a JSON document of at most `max_bytes`. Redirects are not followed.
///
/// # Errors
///
/// The reason as text.
pub async fn get_json(url: &str, within: Duration, max_bytes: usize) -> Result<Value, String> {
    let (_, client) = client(url, within)?;
    let ask = async {
        let response = client.get(url).send().await;
        let response = response.map_err(|error| format!("no answer: {}", error.without_url()))?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("it answers {}", status.as_u16()));
        }
        let mut body = Body::new(response, max_bytes, within);
        let (text, end) = body.whole().await;
        end.map_err(|fault| fault.describe())?;
        serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
    };
    let answer = tokio::time::timeout(within, ask).await;
    answer.map_err(|_| format!("no answer within {} s", within.as_secs_f64()))?
}
