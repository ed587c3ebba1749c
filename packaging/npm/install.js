// Replaces the start script with the program itself, which saves the start of node at every call. Where that fails,
// the script stays, and works. On Windows npm starts programs by a script that it has written already.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { program } = require("./platform.js");

if (process.platform !== "win32") {
  const target = path.join(__dirname, "bin", "memctl");
  const temporary = `${target}.${process.pid}`;
  try {
    try {
      fs.linkSync(program(), temporary);
    } catch {
      fs.copyFileSync(program(), temporary);
    }
    fs.chmodSync(temporary, 0o755);
    fs.renameSync(temporary, target);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    // The start script says what is missing, when it is called.
  }
}
