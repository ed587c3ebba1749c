//! Response body, read within limits of size and silence.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, LOCATION};

use super::attempt_error::{Fault, shortened};
use super::client::host;

/// Response whose headers have arrived.
pub(super) struct Body {
    response: Response,
    size: usize,
    max_bytes: usize,
    silent_for: Duration,
}

impl Body {
    pub(super) const fn new(response: Response, max_bytes: usize, silent_for: Duration) -> Self {
        Self {
            response,
            size: 0,
            max_bytes,
            silent_for,
        }
    }

    /// Returns `true` if the content type is an event stream.
    pub(super) fn is_stream(&self) -> bool {
        let kind = self.response.headers().get(CONTENT_TYPE);
        kind.and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/event-stream"))
    }

    /// Next bytes; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let Some(allowed) = self.max_bytes.checked_sub(self.size) else {
            return Err(Fault::Malformed {
                reason: format!("more than {} bytes", self.max_bytes),
                text: String::new(),
            });
        };
        let chunk = match tokio::time::timeout(self.silent_for, self.response.chunk()).await {
            Err(_) => {
                let seconds = self.silent_for.as_secs_f64();
                return Err(Fault::Broken(format!("nothing came for {seconds} s")));
            }
            Ok(Err(_)) => return Err(Fault::Broken("the connection was cut".to_owned())),
            Ok(Ok(chunk)) => chunk,
        };
        Ok(chunk.map(|bytes| {
            // Bytes over the limit are dropped, and the next call fails.
            self.size = self.size.saturating_add(bytes.len());
            bytes[..bytes.len().min(allowed)].to_vec()
        }))
    }

    /// The whole body as text, and the error if it is incomplete.
    pub(super) async fn whole(&mut self) -> (String, Result<(), Fault>) {
        let mut bytes = Vec::new();
        let end = loop {
            match self.chunk().await {
                Ok(Some(more)) => bytes.extend(more),
                Ok(None) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        (String::from_utf8_lossy(&bytes).into_owned(), end)
    }

    /// Reads the error of an unsuccessful response.
    pub(super) async fn refusal(mut self) -> Fault {
        let status = self.response.status();
        let headers = self.response.headers().clone();
        let message = if status.is_redirection() {
            let target = headers.get(LOCATION).and_then(|to| to.to_str().ok());
            let target = target.and_then(|to| self.response.url().join(to).ok());
            let target = target.map_or_else(|| "nowhere".to_owned(), |url| host(&url));
            format!("it redirects to `{target}`, which is not followed")
        } else {
            // A partial error text is better than none.
            let (text, _) = self.whole().await;
            match serde_json::from_str(&text) {
                Ok(body) => return Fault::read(status.as_u16(), headers, &body),
                Err(_) => shortened(&text),
            }
        };
        Fault::Status {
            status: status.as_u16(),
            headers: Box::new(headers),
            code: String::new(),
            message,
        }
    }
}
