// All operations in path style, with the account's key, against a running server:
//
//   RANGEHOLD_TABLE_ENDPOINT   default http://127.0.0.1:10002/devstoreaccount1
//   RANGEHOLD_ACCOUNT, RANGEHOLD_KEY   default: the well-known development account

import { suites } from "./operations/index.js";
import { Service } from "./service.js";

const { RANGEHOLD_TABLE_ENDPOINT, RANGEHOLD_ACCOUNT, RANGEHOLD_KEY } = process.env;

const service = new Service({
  endpoint: RANGEHOLD_TABLE_ENDPOINT ?? "http://127.0.0.1:10002/devstoreaccount1",
  account: RANGEHOLD_ACCOUNT,
  key: RANGEHOLD_KEY,
});
for (const suite of suites) suite(service);
