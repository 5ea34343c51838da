//! TLS: certificates from files, or a self-signed one for development.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The files of the certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file with the certificate chain, the server's own first.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {path} as PEM: {reason}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The error of reading it.
        reason: String,
    },
    /// The certificate and the key do not belong together, or are of an unknown kind.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// The development certificate could not be made or written.
    #[error("cannot make a development certificate in {path}: {reason}")]
    Make {
        /// The directory for it.
        path: PathBuf,
        /// The error.
        reason: String,
    },
}

/// An acceptor for TLS 1.2 and 1.3 that offers HTTP/2 and HTTP/1.1.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let pem = |path: &Path, error: rustls::pki_types::pem::Error| TlsError::Pem {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem(&files.certificate, error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| pem(&files.key, error))?;
    let mut config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The development certificate in `directory`, which is made there the first time. It is for localhost,
/// `*.localhost`, `*.table.localhost`, 127.0.0.1 and ::1. A client must be configured to trust `cert.pem`.
pub fn self_signed(directory: &Path) -> Result<TlsFiles, TlsError> {
    let files = TlsFiles { certificate: directory.join("cert.pem"), key: directory.join("key.pem") };
    if files.certificate.exists() && files.key.exists() {
        return Ok(files);
    }
    let failed = |reason: String| TlsError::Make { path: directory.to_owned(), reason };
    let names = ["localhost", "*.localhost", "*.table.localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(error.to_string()))?;
    fs::create_dir_all(directory)
        .and_then(|()| write_private(&files.key, made.signing_key.serialize_pem().as_bytes()))
        .and_then(|()| fs::write(&files.certificate, made.cert.pem()))
        .map_err(|error| failed(error.to_string()))?;
    Ok(files)
}

/// Writes a file that only its owner may read. It replaces an older one.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
