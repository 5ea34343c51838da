//! Google Cloud Storage, as pure functions: what its requests ask, and what is answered.
//!
//! | what | where |
//! |---|---|
//! | the stored form of buckets and objects, and their JSON | [`bucket`], [`generation`], [`acl`], [`row`] |
//! | names, checksums, times and numbers in their forms | [`name`], [`checksum`], [`micros`], [`int64`], [`storage_class`] |
//! | what requests ask for, and on which conditions | [`request`], [`condition`] |
//! | the decision of a write | [`mod@write`], [`upload`], [`intent`] |
//! | folders of buckets with a hierarchical namespace | [`folder`] |
//! | listings | [`list`] |
//! | rewrites in several calls | [`rewrite`] |
//! | what rows say about rows of other ranges | [`restored`] |
//! | work that goes on after its request | [`operation`], [`bulk_restore`] |
//! | what time asks for: lifecycle rules, and rows whose life is over | [`ageing`] |
//! | bodies and replies | [`multipart`], [`batch`], [`chunked`], [`merge`], [`fields`], [`link`], [`error`] |
//! | the XML API, and its uploads in parts | [`xml`], [`parts`] |
//! | patterns of names | [`glob`] |
//! | the same over gRPC | [`grpc`] |
//! | signatures, and what forms may upload | [`signed`], [`policy`] |
//! | limits | [`limits`] |

pub mod acl;
pub mod ageing;
pub mod batch;
pub mod bucket;
pub mod bulk_restore;
pub mod checksum;
pub mod chunked;
pub mod condition;
pub mod error;
pub mod fields;
pub mod folder;
pub mod generation;
pub mod glob;
pub mod grpc;
pub mod int64;
pub mod intent;
pub mod limits;
pub mod link;
pub mod list;
pub mod merge;
pub mod micros;
pub mod multipart;
pub mod name;
pub mod operation;
pub mod parts;
pub mod policy;
pub mod project;
pub mod request;
pub mod restored;
pub mod rewrite;
pub mod row;
pub mod signed;
pub mod storage_class;
pub mod upload;
pub mod write;
pub mod xml;
