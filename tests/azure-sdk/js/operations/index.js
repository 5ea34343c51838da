// All suites. Each is a function that defines its tests for one service.

import entities from "./entities.js";
import keys from "./keys.js";
import paging from "./paging.js";
import policies from "./policies.js";
import properties from "./properties.js";
import queries from "./queries.js";
import sas from "./sas.js";
import tables from "./tables.js";
import transactions from "./transactions.js";
import types from "./types.js";

export const suites = [tables, entities, types, keys, queries, transactions, paging, policies, properties, sas];
