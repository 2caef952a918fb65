// A reporter of vitest: appends a line for each test file to the file that OPMATE_DURATIONS names: milliseconds, title, name.
import { appendFileSync } from 'node:fs';

export default class Durations {
  onTestModuleEnd(module) {
    const { OPMATE_DURATIONS: file, OPMATE_RUN: title = 'vitest' } = process.env;
    if (file === undefined) return;
    const milliseconds = Math.round(module.diagnostic().duration);
    appendFileSync(file, `${milliseconds}\t${title}\t${module.relativeModuleId}\n`);
  }
}
