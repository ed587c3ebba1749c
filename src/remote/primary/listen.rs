//! Notifications about changes in the database.

use std::sync::Arc;
use std::time::Duration;

use super::super::connection::Connection;
use super::super::error::Error;
use super::{ANSWER_WITHIN, PgStore, Shared};

/// Pause before a new attempt after a failure: first value and maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Interval of liveness checks on a silent session.
const ALIVE: Duration = Duration::from_mins(1);

impl PgStore {
    /// Calls `changed` after every write to rows of this user, and once when the session starts
    /// listening. Runs as long as the store exists, and reconnects after failures.
    pub fn listen(&self, changed: Arc<dyn Fn() + Send + Sync>) {
        let shared = Arc::clone(&self.shared);
        self.handle.spawn(async move {
            let mut pause = FIRST_PAUSE;
            loop {
                if let Ok(session) = Session::open(&shared).await {
                    pause = FIRST_PAUSE;
                    session.follow(&changed).await;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }
}

struct Session {
    connection: Connection,
    heard: tokio::sync::mpsc::UnboundedReceiver<String>,
    user: String,
}

impl Session {
    async fn open(shared: &Shared) -> Result<Self, Error> {
        let (tell, heard) = tokio::sync::mpsc::unbounded_channel();
        let connection = Connection::open_hearing(&shared.address, Some(tell)).await?;
        let failed = connection.failed("nothing is heard of the database");
        let client = &connection.client;
        let user = client.query_typed("select memctl.current_user_id()::text", &[]);
        let user = user.await.map_err(&failed)?;
        let user = user.first().and_then(|row| row.get::<_, Option<String>>(0));
        let user = user.ok_or_else(|| Error::Nobody(shared.address.shown()))?;
        let listen = client.batch_execute("listen memctl_written");
        listen.await.map_err(&failed)?;
        Ok(Self {
            connection,
            heard,
            user,
        })
    }

    /// Reports changes until the session ends.
    async fn follow(mut self, changed: &Arc<dyn Fn() + Send + Sync>) {
        loop {
            let changed = Arc::clone(changed);
            // The callback blocks on files and on the database.
            drop(tokio::task::spawn_blocking(move || changed()).await);
            if !self.next().await {
                return;
            }
        }
    }

    /// Waits for a change. Returns `false` when the session has ended.
    async fn next(&mut self) -> bool {
        loop {
            match tokio::time::timeout(ALIVE, self.heard.recv()).await {
                Ok(None) => return false,
                Ok(Some(user)) if user != self.user => {}
                Ok(Some(_)) => {
                    // One call covers all notifications received so far.
                    while self.heard.try_recv().is_ok() {}
                    return true;
                }
                Err(_) => {
                    let asked = self.connection.client.batch_execute("select 1");
                    let answered = tokio::time::timeout(ANSWER_WITHIN, asked).await;
                    if !matches!(answered, Ok(Ok(()))) {
                        return false;
                    }
                }
            }
        }
    }
}
