//! Which account the commands about tables and entities speak to: the flags and variables of `az storage`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use rangehold_client::account::Endpoint;
use rangehold_client::{Account, Options, Service, Table};

/// The account, by a connection string or by its parts.
#[derive(Debug, Clone, Args)]
pub(crate) struct AccountFlags {
    /// Connection string of the account, such as UseDevelopmentStorage=true. It comes before the other ways to name the
    /// account.
    #[arg(long, env = "AZURE_STORAGE_CONNECTION_STRING", value_name = "TEXT", hide_env_values = true)]
    connection_string: Option<String>,
    /// Name of the account.
    #[arg(long, env = "AZURE_STORAGE_ACCOUNT", value_name = "NAME")]
    account_name: Option<String>,
    /// Key of the account.
    #[arg(long, env = "AZURE_STORAGE_KEY", value_name = "KEY", hide_env_values = true)]
    account_key: Option<String>,
    /// Shared access signature, in place of a key.
    #[arg(long, env = "AZURE_STORAGE_SAS_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    sas_token: Option<String>,
    /// The table service [default: NAME.table.core.windows.net, by https]
    #[arg(long, alias = "table-endpoint", env = "AZURE_STORAGE_SERVICE_ENDPOINT", value_name = "URL")]
    endpoint: Option<String>,
    /// The form of the output: table for people, json for programs.
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Output,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables and sentences.
    Table,
    /// JSON.
    Json,
}

impl AccountFlags {
    /// The table service of the account. Nothing is sent yet.
    pub(crate) fn service(&self) -> Result<Service> {
        self.service_with(Options::default())
    }

    /// The same, with other options.
    pub(crate) fn service_with(&self, options: Options) -> Result<Service> {
        Ok(Service::new(self.account()?, options)?)
    }

    /// A table of the account.
    pub(crate) fn table(&self, name: &str) -> Result<Table> {
        Ok(self.service()?.table(name)?)
    }

    /// Where the account is.
    pub(crate) fn endpoint(&self) -> Result<String> {
        Ok(self.account()?.endpoint().to_string())
    }

    /// The account itself.
    pub(crate) fn account(&self) -> Result<Account> {
        if let Some(text) = &self.connection_string {
            return Ok(Account::from_connection_string(text)?);
        }
        let endpoint = match (&self.endpoint, &self.account_name) {
            (Some(endpoint), _) => endpoint.clone(),
            (None, Some(name)) => format!("https://{name}.table.core.windows.net"),
            (None, None) => bail!(
                "no account is named: give --connection-string (or set AZURE_STORAGE_CONNECTION_STRING), or \
                 --account-name with --account-key or --sas-token"
            ),
        };
        let endpoint = Endpoint::parse(&endpoint)?;
        match (&self.account_name, &self.account_key, &self.sas_token) {
            (_, _, Some(sas)) => Ok(Account::with_sas(endpoint, sas)),
            (Some(name), Some(key), None) => Ok(Account::with_key(endpoint, name, key)?),
            (Some(name), None, None) => {
                bail!("nothing proves that {name} may be used: give --account-key or --sas-token")
            }
            (None, _, None) => bail!(
                "--endpoint alone is not enough: give --account-name with --account-key, or --sas-token"
            ),
        }
    }
}
