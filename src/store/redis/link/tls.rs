//! TLS to Redis, by rustls with ring.

use std::{fmt::Display, path::Path, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};

use super::{address::TlsPaths, error::LinkError};

/// How TLS connections are made.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    /// Reads the files once; a certificate that is replaced needs a restart.
    pub(super) fn new(paths: &TlsPaths) -> Result<Self, LinkError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| LinkError::Tls(error.to_string().into()))?
            .with_root_certificates(roots(paths.ca.as_deref())?);
        let config = match &paths.client {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let chain = certificates(cert)?;
                let private =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| in_file(key, &error))?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| in_file(cert, &error))?
            }
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// The certificate must be valid for `host`, a name or an IP address.
    pub(super) async fn connect(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        self.0.connect(name, tcp).await
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, LinkError> {
    let mut roots = RootCertStore::empty();
    if let Some(ca) = ca {
        for certificate in certificates(ca)? {
            roots
                .add(certificate)
                .map_err(|error| in_file(ca, &error))?;
        }
        return Ok(roots);
    }
    // one that cannot be read is of no use here, but may be of none anywhere
    let of_machine = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(of_machine.certs);
    if roots.is_empty() {
        return Err(LinkError::Tls(
            "this machine has no certificate authorities: name a file with ?ca=".into(),
        ));
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, LinkError> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| in_file(file, &error))
}

fn in_file(file: &Path, error: &dyn Display) -> LinkError {
    LinkError::Tls(format!("{}: {error}", file.display()).into())
}
