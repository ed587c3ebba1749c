//! A plain session with a database, as any other program has one: it proves what the server does, not
//! what our own code does with it.

use tokio::runtime::Runtime;
use tokio_postgres::{NoTls, SimpleQueryMessage};

pub(crate) struct Client {
    runtime: Runtime,
    client: tokio_postgres::Client,
}

impl Client {
    pub(crate) fn try_connect(url: &str) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (client, connection) = runtime
            .block_on(tokio_postgres::connect(url, NoTls))
            .map_err(|e| e.to_string())?;
        runtime.spawn(async move { drop(connection.await) });
        Ok(Self { runtime, client })
    }

    pub(crate) fn connect(url: &str) -> Self {
        Self::try_connect(url).unwrap()
    }

    /// The rows of the last statement, as text; or the code of the error and what it says.
    pub(crate) fn query(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let messages = self
            .runtime
            .block_on(self.client.simple_query(sql))
            .map_err(|e| {
                let said = e.as_db_error().map(tokio_postgres::error::DbError::message);
                format!(
                    "{} {}",
                    e.code().map_or("", |c| c.code()),
                    said.unwrap_or_default()
                )
            })?;
        let mut rows = Vec::new();
        for message in messages {
            match message {
                SimpleQueryMessage::Row(row) => rows.push(
                    (0..row.len())
                        .map(|i| row.get(i).unwrap_or("∅").to_owned())
                        .collect(),
                ),
                SimpleQueryMessage::RowDescription(_) => rows.clear(),
                _ => {}
            }
        }
        Ok(rows)
    }

    /// The rows of statements that must succeed.
    pub(crate) fn run(&self, sql: &str) -> Vec<Vec<String>> {
        self.query(sql).unwrap_or_else(|e| panic!("{e}\n{sql}"))
    }

    /// The only value of a statement that must succeed.
    pub(crate) fn value(&self, sql: &str) -> String {
        let rows = self.run(sql);
        assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}: {rows:?}");
        rows[0][0].clone()
    }

    /// Sends rows by COPY, a megabyte at a time.
    pub(crate) fn copy_in(&self, sql: &str, mut text: impl std::io::Read) {
        use std::io::Read as _;

        use futures_util::SinkExt as _;
        self.runtime.block_on(async {
            let sink = self
                .client
                .copy_in::<_, std::io::Cursor<Vec<u8>>>(sql)
                .await
                .unwrap();
            let mut sink = std::pin::pin!(sink);
            loop {
                let mut part = Vec::new();
                let length = text.by_ref().take(1 << 20).read_to_end(&mut part).unwrap();
                if length == 0 {
                    break;
                }
                sink.send(std::io::Cursor::new(part)).await.unwrap();
            }
            sink.close().await.unwrap();
        });
    }

    /// How many rows a statement changed; the code of its error where it must not be.
    pub(crate) fn changed(&self, sql: &str) -> Result<u64, String> {
        self.runtime
            .block_on(self.client.execute(sql, &[]))
            .map_err(|e| e.code().map_or(e.to_string(), |c| c.code().to_owned()))
    }

    /// A statement that the server must refuse with this code.
    pub(crate) fn refused(&self, code: &str, sql: &str) {
        match self.query(sql) {
            Err(said) => assert!(said.starts_with(code), "{said}\n{sql}"),
            Ok(rows) => panic!("not refused: {rows:?}\n{sql}"),
        }
    }
}

/// The messages of a channel that come while something is done.
pub(crate) fn heard(url: &str, channel: &str, meanwhile: impl FnOnce()) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (client, mut connection) = runtime
        .block_on(tokio_postgres::connect(url, NoTls))
        .unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let tokio_postgres::AsyncMessage::Notification(message) = message {
                drop(sender.send(message.payload().to_owned()));
            }
        }
    });
    let ask = |sql: String| runtime.block_on(client.batch_execute(&sql)).unwrap();
    ask(format!("listen {channel}"));
    meanwhile();
    // What was said before an answer has come before it.
    ask("select 1".to_owned());
    receiver.try_iter().collect()
}
