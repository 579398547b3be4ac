// Makes a Node program believe that it runs in a container whose host is this machine: loaded by `node --require`.
"use strict";
const dns = require("node:dns");
const fs = require("node:fs");
const { syncBuiltinESMExports } = require("node:module");

const { lookup } = dns;
dns.lookup = (name, ...rest) => lookup(name === "host.docker.internal" ? "127.0.0.1" : name, ...rest);
const { existsSync } = fs;
fs.existsSync = (path) => path === "/.dockerenv" || existsSync(path);
syncBuiltinESMExports();
