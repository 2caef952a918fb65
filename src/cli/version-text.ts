import { ownVersion, platformOfMachine } from '../api/own-process.js';
import { readOwnFile } from '../files/own-files.js';

/** Returns the line of `opm version`, which scripts parse. `machine` is the architecture in the words of Node.js. */
export function versionText(machine: string = process.arch): string {
  const { commit, date } = readBuild();
  const { os, architecture } = platformOfMachine(machine);
  return (
    `Version: version.Version{OpmVersion:"v${ownVersion()}", GitCommit:"${commit}", BuildDate:"${date}", ` +
    `GoOs:"${os}", GoArch:"${architecture}"}\n`
  );
}

/** Returns the commit that was compiled and its date in UTC; both are empty for a build without git. */
export function readBuild(): { commit: string; date: string } {
  try {
    return JSON.parse(readOwnFile('dist/build.json').toString()) as { commit: string; date: string };
  } catch {
    return { commit: '', date: '' };
  }
}
