//! TLS: the server's certificate, read once at the start.

use std::{path::PathBuf, sync::Arc};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject as _},
        },
    },
};

use crate::config::TlsFiles;

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file cannot be read.
    #[error("{}: {error}", file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// Why.
        error: pem::Error,
    },
    /// Certificate and key do not go together, or are of no kind that is known.
    #[error("{}: {error}", file.display())]
    Certificate {
        /// The file of the certificate.
        file: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

/// Reads certificate and key; HTTP/2 is offered before HTTP/1.1.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let pem = |file: &PathBuf, error| TlsError::Pem {
        file: file.clone(),
        error,
    };
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem(&files.cert, error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| pem(&files.key, error))?;
    let wrong = |error| TlsError::Certificate {
        file: files.cert.clone(),
        error,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(wrong)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
