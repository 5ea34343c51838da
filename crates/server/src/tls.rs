//! TLS: certificates from files, or a self-signed one for development.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ServerConfig};
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
    /// The certificate is of version 1, as a certificate without extensions is.
    #[error(
        "the certificate in {path} is of X.509 version 1, which has no room for the names of a server, and is refused by TLS \
        libraries: make one of version 3, for example with openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=NAME \
        -addext subjectAltName=DNS:NAME -keyout key.pem -out cert.pem"
    )]
    OldVersion {
        /// The file.
        path: PathBuf,
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

/// The certificate that a server shows, which can be replaced while it runs. Clones are the same.
#[derive(Debug, Clone)]
pub struct Certificate(Arc<ArcSwap<CertifiedKey>>);

impl Certificate {
    /// Reads the certificate and its key. Fails if they do not belong together.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(read(files, &aws_lc_rs::default_provider())?))))
    }

    /// Reads the files again. Connections that begin later see the new certificate. Returns whether it is another one.
    /// After an error the old one stays.
    pub fn read_again(&self, files: &TlsFiles) -> Result<bool, TlsError> {
        let read = read(files, &aws_lc_rs::default_provider())?;
        let changed = read.cert != self.0.load().cert;
        if changed {
            self.0.store(Arc::new(read));
        }
        Ok(changed)
    }

    /// An acceptor for TLS 1.2 and 1.3 that offers HTTP/2 and HTTP/1.1.
    pub fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let pem = |path: &Path, error: rustls::pki_types::pem::Error| TlsError::Pem {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem(&files.certificate, error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| pem(&files.key, error))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match is_about_the_version(&error) {
        true => TlsError::OldVersion { path: files.certificate.clone() },
        false => TlsError::Unusable(error),
    })
}

/// Whether a certificate is refused for its version. The library has no variant for that, only its parser's error.
fn is_about_the_version(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(CertificateError::Other(cause))
        if cause.to_string().contains("UnsupportedCertVersion"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_version_1_is_refused_with_what_to_do() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/certificates");
        let files = TlsFiles {
            certificate: directory.join("version-1.pem"),
            key: directory.join("version-1-key.pem"),
        };
        let error = Certificate::read(&files).expect_err("it is refused").to_string();
        assert!(error.contains("version-1.pem is of X.509 version 1"), "{error}");
        assert!(error.contains("-addext subjectAltName"), "{error}");
    }
}
