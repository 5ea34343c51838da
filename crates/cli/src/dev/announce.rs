//! What the server prints when it has started, and connection strings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Result;
use clap::Args;
use rangehold_server::Running;
use rangehold_server::accounts::{Account, WELL_KNOWN_KEY};
use serde_json::{Value, json};

use crate::config::{Config, DevFlags, Tls};
use crate::output::Format;

/// `rangehold connection-string`
#[derive(Debug, Args)]
pub(crate) struct ConnectionStringFlags {
    #[command(flatten)]
    server: DevFlags,
    /// The form of the output: text for people and scripts, json for programs.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// The URL of a service at `address`. An address that means "all addresses" is replaced by one that can be called.
pub(super) fn url(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.tls == Tls::Off { "http" } else { "https" };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// Prints where everything is. Tools wait for some of these lines.
pub(super) fn announce(config: &Config, running: &Running, token: &str) {
    let tables = url(config, running.table_address);
    let data = config
        .data
        .as_ref()
        .map_or("in memory, lost when the program ends".to_owned(), |d| d.display().to_string());
    // Tools wait for exactly this line.
    println!("Table service is successfully listening at {tables}");
    announce_objects(config, running);
    println!("Admin is listening at http://{}", running.admin_address);
    println!("Data: {data}");
    println!("Profile: {}", config.profile.name);
    if config.data.is_none() && config.admin_token.is_none() {
        // No file has it, and it ends with the process.
        println!("Admin token: {token} (for other commands: RANGEHOLD_ADMIN_TOKEN={token})");
    }
    for string in connection_strings(config, &tables) {
        println!("Connection string: {string}");
    }
}

fn announce_objects(config: &Config, running: &Running) {
    let (Some(address), Some(objects)) = (running.object_address, &config.objects) else {
        match &config.objects {
            None => println!("Objects are not served: beyond loopback they need --objects-auth"),
            Some(objects) => println!(
                "Objects are not served: port {} is in use; choose another one by --object-port",
                objects.port
            ),
        }
        return;
    };
    println!("Objects: STORAGE_EMULATOR_HOST={}", url(config, address));
    if !objects.auth {
        println!(
            "Objects are open: everybody on this machine may read and write them, with any token or none"
        );
    }
}

/// The connection strings for SDKs, one for each account. They have the well-known key, which is not secret; other keys
/// are replaced by `<key>`.
fn connection_strings(config: &Config, tables: &str) -> Vec<String> {
    let protocol = tables.split(':').next().unwrap_or("http");
    let string = |account: &Account| {
        let name = &account.name;
        let key = if account.has_well_known_key() { WELL_KNOWN_KEY } else { "<key>" };
        format!(
            "DefaultEndpointsProtocol={protocol};AccountName={name};AccountKey={key};TableEndpoint={tables}/{name};"
        )
    };
    config.accounts.iter().map(string).collect()
}

/// Prints the connection strings of a server with these settings.
pub(crate) fn print_connection_strings(flags: &ConnectionStringFlags) -> Result<()> {
    let config = flags.server.resolve()?;
    let tables = url(&config, SocketAddr::new(config.host, config.table_port));
    let strings = connection_strings(&config, &tables);
    match flags.output {
        Format::Text => strings.iter().for_each(|string| println!("{string}")),
        Format::Json => println!("{:#}", by_account(&config, &strings)),
    }
    Ok(())
}

/// The connection strings, each with its account.
fn by_account(config: &Config, strings: &[String]) -> Value {
    let all = config.accounts.iter().zip(strings);
    all.map(|(account, string)| json!({ "account": account.name, "connection_string": string })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_has_a_connection_string_with_an_address_that_can_be_called() {
        let flags = DevFlags::with_accounts("one:YQ==;two:Yg==");
        let config = Config { host: Ipv4Addr::UNSPECIFIED.into(), ..flags.resolve().unwrap() };
        let tables = url(&config, SocketAddr::new(config.host, config.table_port));
        let strings = connection_strings(&config, &tables);
        assert_eq!(strings.len(), 2);
        assert!(
            strings[1].contains("AccountName=two;AccountKey=<key>;TableEndpoint=http://127.0.0.1:10002/two;")
        );
        let told = by_account(&config, &strings);
        assert_eq!(told[1], json!({ "account": "two", "connection_string": strings[1] }));
        assert_eq!(told[0]["account"], "one");
    }
}
