//! List of the models that a server offers.

use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::Value;

use super::client::{client, host};
use super::protocol::bearer;
use super::{Error, Secret};

/// Names of the models that a server offers. Also checks that the server is available.
///
/// # Errors
///
/// [`Error::Config`] for an invalid URL, [`Error::TimedOut`], [`Error::Unreachable`],
/// [`Error::BadRequest`] for every unsuccessful status, and [`Error::Malformed`].
pub async fn list_models(
    provider: &str,
    base_url: &str,
    key: Option<&Secret>,
    within: Duration,
) -> Result<Vec<String>, Error> {
    let shown = format!("{provider}/*");
    let base_url = base_url.trim_end_matches('/');
    let (url, client) = client(base_url, within).map_err(|reason| Error::Config {
        model: shown.clone(),
        reason,
    })?;
    let unreachable = |source: reqwest::Error| Error::Unreachable {
        host: host(&url),
        attempts: 1,
        source: source.without_url(),
    };
    let key = key.and_then(|key| HeaderValue::from_str(key.expose()).ok());
    let ask = async {
        let request = client.get(format!("{base_url}/models"));
        let response = request.headers(bearer(key.as_ref())).send().await;
        let response = response.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        if !status.is_success() {
            return Err(Error::BadRequest {
                provider: provider.to_owned(),
                status: status.as_u16(),
                message: "it does not list its models".to_owned(),
            });
        }
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(models) = body["data"].as_array() else {
            return Err(Error::Malformed {
                provider: provider.to_owned(),
                reason: "no list `data`".to_owned(),
                text,
            });
        };
        let names = models.iter().filter_map(|model| model["id"].as_str());
        Ok(names.map(str::to_owned).collect())
    };
    tokio::time::timeout(within, ask)
        .await
        .map_err(|_| Error::TimedOut {
            model: shown.clone(),
            after: within,
            paid: None,
        })?
}
