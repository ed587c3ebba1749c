//! Who makes the vectors: the built-in model, one in a folder, or one behind a URL.
//!
//! Vectors are stamped with who made them, down to the bytes of a model in a folder, and vectors of
//! different stamps are never compared. A model behind a URL is asked with little patience while
//! somebody waits for a search, and with the patience of every other question where an index is made.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::llm::{Embeddings, EmbeddingsConfig, EmbeddingsProtocol, Limits, Secret};
use crate::platform::named;
use crate::search::{DIMENSIONS, EMBEDDER, EmbedError, Export, Transformer, Vector, built_in};

use super::Error;
use super::index::Embedding;

/// How long a search waits for a model behind a URL, and how long for the connection to it.
const SEARCH_WAITS: Duration = Duration::from_secs(5);
const SEARCH_CONNECTS: Duration = Duration::from_secs(2);

/// The largest file of a folder that is read: 1 GiB. Larger models are for servers.
const LARGEST: u64 = 1 << 30;

/// Where an export says how the vectors of its tokens become one.
const POOLING: &str = "1_Pooling";

/// So many texts go through a model on this machine between two savings.
const BATCH: usize = 256;

/// Who makes the vectors, as it is configured.
#[derive(Debug, Clone, Default)]
pub enum Embedder {
    /// The transformer that is built into the program.
    #[default]
    BuiltIn,
    /// One that lies in a folder.
    Folder(PathBuf),
    /// One behind a URL.
    Remote(RemoteEmbedder),
}

/// A model behind a URL.
#[derive(Debug, Clone)]
pub struct RemoteEmbedder {
    /// What is spoken there.
    pub protocol: EmbeddingsProtocol,
    /// Where.
    pub base_url: String,
    /// The key, if it wants one.
    pub key: Option<Secret>,
    /// The server's name of the model.
    pub model: String,
    /// How many numbers a vector shall have; `None` leaves that to the model.
    pub dimensions: Option<usize>,
    /// How many texts go into one request.
    pub batch: usize,
    /// Time limit of a request where an index is made.
    pub answer_within: Duration,
    /// Requests after the first.
    pub max_retries: u32,
}

/// The names of the ways to make vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedderName {
    /// `built-in`
    BuiltIn,
    /// `folder`
    Folder,
    /// `openai` or `ollama`
    Remote(EmbeddingsProtocol),
}

impl FromStr for EmbedderName {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "built-in" => Ok(Self::BuiltIn),
            "folder" => Ok(Self::Folder),
            "openai" => Ok(Self::Remote(EmbeddingsProtocol::OpenAi)),
            "ollama" => Ok(Self::Remote(EmbeddingsProtocol::Ollama)),
            _ => Err("the embedders are built-in, openai, ollama and folder"),
        }
    }
}

/// Where texts are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Host and port.
    pub host: String,
    /// `provider/model`.
    pub model: String,
    /// How many texts go into one request.
    pub batch: usize,
}

/// How long one may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Somebody waits for a search.
    Search,
    /// An index is made.
    Index,
}

/// Which bytes a model on this machine is made of: as long as this is the same, so is the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Those in the program.
    BuiltIn,
    /// Those of the files in a folder.
    Folder(PathBuf, Vec<FileState>),
}

/// A file's path, its length, which file it is, and when it was last changed in any way.
type FileState = (PathBuf, u64, u64, (i64, i64));

impl Embedder {
    /// What it is loaded from; `None` where it is behind a URL.
    pub(super) fn source(&self) -> Option<Source> {
        match self {
            Self::BuiltIn => Some(Source::BuiltIn),
            Self::Folder(folder) => Some(Source::Folder(folder.clone(), states(folder))),
            Self::Remote(_) => None,
        }
    }

    /// Where texts are sent; `None` where they stay on this machine's processor.
    ///
    /// # Errors
    ///
    /// A base URL that is none.
    pub fn destination(&self) -> Result<Option<Destination>, Error> {
        let Self::Remote(remote) = self else {
            return Ok(None);
        };
        let embeddings = remote.embeddings(Patience::Index)?;
        Ok(Some(Destination {
            host: embeddings.host().to_owned(),
            model: embeddings.model().to_owned(),
            batch: remote.batch,
        }))
    }

    /// Makes it ready, for one text or for many. Sends nothing.
    pub(super) fn open(&self, patience: Patience, many_texts: bool) -> Result<Maker, Error> {
        match self {
            Self::BuiltIn => Ok(Maker {
                stamp: EMBEDDER
                    .trim_end_matches(&format!("/{DIMENSIONS}"))
                    .to_owned(),
                dimensions: Some(DIMENSIONS),
                batch: BATCH,
                model: Model::Here(Box::new(built_in(many_texts)?)),
            }),
            Self::Folder(folder) => {
                let export = read(folder)?;
                let name = folder.file_name().unwrap_or_default().to_string_lossy();
                let stamp = format!("folder/{name}-{}", export.digest());
                let said = export.dimensions()?;
                let model = export.load()?;
                // What the network gives is what counts; one text says it.
                let dimensions = model.embed(&["."])?.first().map_or(0, Vec::len);
                if let Some(said) = said.filter(|said| *said != dimensions) {
                    return Err(Error::VectorSize {
                        embedder: stamp,
                        found: dimensions,
                        expected: said,
                    });
                }
                Ok(Maker {
                    stamp,
                    dimensions: Some(dimensions),
                    batch: BATCH,
                    model: Model::Here(Box::new(model)),
                })
            }
            Self::Remote(remote) => {
                let embeddings = remote.embeddings(patience)?;
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(|source| Error::Runtime { source })?;
                Ok(Maker {
                    stamp: embeddings.model().to_owned(),
                    dimensions: remote.dimensions,
                    batch: remote.batch.max(1),
                    model: Model::There(Box::new(embeddings), Driver(Some(runtime))),
                })
            }
        }
    }
}

impl RemoteEmbedder {
    fn embeddings(&self, patience: Patience) -> Result<Embeddings, Error> {
        let mut limits = Limits {
            answer_within: self.answer_within,
            ..Limits::default()
        };
        limits.retry.max_retries = self.max_retries;
        if patience == Patience::Search {
            limits.answer_within = SEARCH_WAITS.min(self.answer_within);
            limits.connect_within = SEARCH_CONNECTS;
            limits.retry.max_retries = 0;
        }
        Ok(Embeddings::new(EmbeddingsConfig {
            protocol: self.protocol,
            base_url: self.base_url.clone(),
            key: self.key.clone(),
            model: self.model.clone(),
            dimensions: self.dimensions,
            limits,
        })?)
    }
}

/// An embedder, ready to be used.
#[derive(Debug)]
pub(super) struct Maker {
    stamp: String,
    dimensions: Option<usize>,
    batch: usize,
    model: Model,
}

#[derive(Debug)]
enum Model {
    Here(Box<Transformer>),
    There(Box<Embeddings>, Driver),
}

/// What drives the requests. It may be let go of on any thread, also on one that drives others meanwhile,
/// as those of a server do; a runtime by itself may not.
#[derive(Debug)]
struct Driver(Option<Runtime>);

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Maker {
    /// Who makes the vectors, without their size.
    pub(super) fn stamp(&self) -> &str {
        &self.stamp
    }

    /// The stamp of the vectors; `None` where their size is not known before there is one.
    pub(super) fn embedding(&self) -> Option<Embedding> {
        let dimensions = self.dimensions?;
        Some(self.embedding_of(dimensions))
    }

    /// The stamp of vectors of this size.
    pub(super) fn embedding_of(&self, dimensions: usize) -> Embedding {
        Embedding {
            name: format!("{}/{dimensions}", self.stamp),
            dimensions,
        }
    }

    /// How many texts are best given at once.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    /// The vectors of the texts, in their order, of length 1 and of one size.
    pub(super) fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        let vectors = self.ask(texts)?;
        // A vector without a direction would be asked for again and again.
        let is_sound = |vector: &Vector| {
            vector.iter().all(|x| x.is_finite()) && vector.iter().any(|x| *x != 0.0)
        };
        if vectors.len() != texts.len() || !vectors.iter().all(is_sound) {
            return Err(EmbedError::NoVector.into());
        }
        Ok(vectors)
    }

    fn ask(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        match &self.model {
            Model::Here(transformer) => Ok(transformer.embed(texts)?),
            Model::There(embeddings, driver) => {
                let runtime = driver.0.as_ref().ok_or(EmbedError::NoVector)?;
                let mut vectors = Vec::with_capacity(texts.len());
                for texts in texts.chunks(self.batch) {
                    // A thread of its own, since the caller may be one that must not wait.
                    let answer = thread::scope(|scope| {
                        let ask = || runtime.block_on(embeddings.embed(texts));
                        scope.spawn(ask).join()
                    });
                    vectors.extend(answer.map_err(|_| EmbedError::NoVector)??);
                }
                let size = vectors.first().map_or(0, Vec::len);
                if let Some(other) = vectors.iter().find(|vector| vector.len() != size) {
                    return Err(self.other_size(other.len(), size));
                }
                vectors.iter_mut().for_each(normalise);
                Ok(vectors)
            }
        }
    }

    /// The error that vectors of another size are.
    pub(super) fn other_size(&self, found: usize, expected: usize) -> Error {
        Error::VectorSize {
            embedder: self.stamp.clone(),
            found,
            expected,
        }
    }
}

fn normalise(vector: &mut Vector) {
    // Squares of 32-bit numbers may be too large for one.
    let squares: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
    let length = squares.sqrt().max(f64::MIN_POSITIVE);
    for number in vector {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a share of 1 is small enough"
        )]
        let share = (f64::from(*number) / length) as f32;
        *number = share;
    }
}

/// The files of an export: the network in the folder or in its `onnx/`, the others in the folder.
fn read(folder: &Path) -> Result<Export, Error> {
    let places = [folder.join("model.onnx"), folder.join("onnx/model.onnx")];
    let network = places
        .iter()
        .find(|path| named::is_file(path))
        .unwrap_or(&places[0]);
    let text = |name: &str| {
        let path = folder.join(name);
        if !named::is_file(&path) {
            return Ok(None);
        }
        let text = String::from_utf8(bytes(&path)?);
        let text = text.map_err(|_| unreadable(&path, "it is not UTF-8"))?;
        Ok::<_, Error>(Some(text))
    };
    Ok(Export {
        model: bytes(network)?,
        weights: weights(network.parent().unwrap_or(folder))?,
        tokenizer: text("tokenizer.json")?,
        vocabulary: text("vocab.txt")?,
        tokenizer_config: text("tokenizer_config.json")?,
        pooling: text(&format!("{POOLING}/config.json"))?,
        sentence: text("sentence_bert_config.json")?,
        modules: text("modules.json")?,
    })
}

/// The weights beside a network, as exporters name them: `model.data`, `model.onnx_data`.
fn weights(directory: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut weights = Vec::new();
    let entries = named::list(directory).map_err(|source| Error::Unreadable {
        path: directory.to_owned(),
        source,
    })?;
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_of_network = name.starts_with("model") && name.ends_with("data");
        if is_of_network && named::is_file(&entry.path()) {
            weights.push((name, bytes(&entry.path())?));
        }
    }
    weights.sort();
    Ok(weights)
}

/// The states of the files that [`read`] may read.
fn states(folder: &Path) -> Vec<FileState> {
    let directories = [folder.to_owned(), folder.join("onnx"), folder.join(POOLING)];
    let mut states = Vec::new();
    for entry in directories
        .iter()
        .filter_map(|directory| named::list(directory).ok())
        .flatten()
    {
        // Of a link, what it leads to counts.
        if let Ok(about) = named::metadata(&entry.path()) {
            let changed = (about.ctime(), about.ctime_nsec());
            states.push((entry.path(), about.len(), about.ino(), changed));
        }
    }
    states.sort();
    states
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        if named::metadata(path)?.len() > LARGEST {
            return Err(std::io::Error::other("it is larger than 1 GiB"));
        }
        named::read(path, LARGEST)
    };
    read().map_err(|source| Error::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn unreadable(path: &Path, reason: &'static str) -> Error {
    Error::Unreadable {
        path: path.to_owned(),
        source: std::io::Error::other(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_length_one_whatever_came() {
        let check = |mut vector: Vector| {
            normalise(&mut vector);
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            assert!((length - 1.0).abs() < 1e-5, "{vector:?}");
        };
        check(vec![3.0, 4.0]);
        check(vec![1e-30, 0.0]);
        check(vec![1e30, -1e30]);
    }

    #[test]
    fn the_built_in_stamp_is_the_one_of_all_its_vectors() {
        let maker = Embedder::BuiltIn.open(Patience::Search, true).unwrap();
        let embedding = maker.embedding().unwrap();
        assert_eq!(
            (embedding.name.as_str(), embedding.dimensions),
            (EMBEDDER, DIMENSIONS)
        );
        assert_eq!(maker.embed(&["x"]).unwrap()[0].len(), DIMENSIONS);
    }

    #[test]
    fn a_folder_without_a_model_says_what_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let error = Embedder::Folder(dir.path().to_owned()).open(Patience::Index, true);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("model.onnx"), "{error}");
    }
}
