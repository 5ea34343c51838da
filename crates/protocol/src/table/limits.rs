//! Every limit of the table protocol. "Recorded" says that a recording of the real service shows it.

/// Properties of an entity, without PartitionKey, RowKey and Timestamp (recorded error text).
pub const PROPERTIES_MAX: usize = 252;
/// Characters (UTF-16 code units) of a property's name (recorded error text).
pub const PROPERTY_NAME_UNITS_MAX: usize = 255;
/// Bytes of an entity's data, names included, counted as Azure documents (see `write`): 1 MiB.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// UTF-16 code units of a string value: 64 KiB of UTF-16.
pub const STRING_UNITS_MAX: usize = 32 * 1024;
/// Bytes of a binary value.
pub const BINARY_BYTES_MAX: usize = 64 * 1024;
/// UTF-16 code units of PartitionKey and of RowKey, each.
pub const KEY_UNITS_MAX: usize = 1024;
/// Bytes of a percent-encoded path to which a client may have signed another spelling. The longest path that can name
/// something has two keys of [`KEY_UNITS_MAX`] characters of three bytes each, so 9 bytes for each character. 1 KiB is for
/// the account, which may be there twice, the table and the names of the keys, percent-encoded too.
pub const PATH_BYTES_MAX: usize = 2 * 9 * KEY_UNITS_MAX + 1024;
/// UTF-16 code units of such a path when it is decoded. In a key made of quotes each of them is written twice.
pub const PATH_UNITS_MAX: usize = 2 * 2 * KEY_UNITS_MAX + 512;
/// Entities, or tables, of one page; also the most that `$top` may ask for.
pub const PAGE_ITEMS_MAX: usize = 1000;
/// Bytes of a page's body after which the page ends.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Operations of a batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Bytes of a batch's body.
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the request line and headers of one part of a batch. This is enough for a line with two keys
/// of 1,024 characters that have three bytes each and are percent-encoded.
pub const BATCH_PART_HEADER_BYTES_MAX: usize = 24 * 1024;
/// Bytes of a multipart boundary (RFC 2046).
pub const BOUNDARY_BYTES_MAX: usize = 70;
/// Bytes of a single operation's body: an entity of 1 MiB in JSON, base64 and escapes included.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an XML body (access policies, service properties).
pub const XML_BYTES_MAX: usize = 64 * 1024;
/// Depth of nested XML elements.
pub const XML_DEPTH_MAX: usize = 32;
/// Names in an entity's JSON, nulls included. It bounds the work of reading one entity, and is far above
/// the number of properties that an entity can have.
pub const MEMBERS_MAX: usize = 1024;
/// Bytes of a `$filter`, which is part of a URI and so cannot be longer than one.
pub const FILTER_BYTES_MAX: usize = 24 * 1024;
/// Depth of parentheses and `not` in a `$filter`.
pub const FILTER_DEPTH_MAX: usize = 32;
/// Comparisons, connectives and negations of a `$filter` together. Azure's own limit of 15 comparisons is
/// not enforced, because programs that were written for emulators use more.
pub const FILTER_NODES_MAX: usize = 1024;
/// Names in a `$select`.
pub const SELECT_NAMES_MAX: usize = 1024;
/// Bytes of a continuation token's text.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Stored access policies of a table (recorded).
pub const POLICIES_MAX: usize = 5;
/// Characters of a stored access policy's id.
pub const POLICY_ID_UNITS_MAX: usize = 64;
/// CORS rules of an account.
pub const CORS_RULES_MAX: usize = 5;
/// Origins of a CORS rule.
pub const CORS_ORIGINS_MAX: usize = 64;
/// Characters of an origin or a header's name in a CORS rule.
pub const CORS_NAME_UNITS_MAX: usize = 256;
/// Header names in a list of a CORS rule.
pub const CORS_HEADERS_MAX: usize = 64;
/// Prefixes of header names in a list of a CORS rule.
pub const CORS_PREFIXES_MAX: usize = 2;
/// Days of a retention policy; the least is 1.
pub const RETENTION_DAYS_MAX: u32 = 365;
/// Seconds by which a request's date may differ from the server's clock.
pub const CLOCK_SKEW_SECONDS_MAX: i64 = 15 * 60;
