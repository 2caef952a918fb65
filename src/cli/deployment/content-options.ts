import { type Command, Option } from 'commander';
import type { GlobalOptions } from '../command/global-flags.js';
import { collect } from '../options.js';

/** Options of every command that reads bundles. */
export interface ContentFlags extends GlobalOptions {
  requireDigest?: boolean;
  lock?: string;
  updateLock?: boolean;
  secrets?: string;
  secret?: string;
  /** `DESTINATION=SOURCE`. */
  add?: string[];
}

/** What `<source>` of a command may be, for its help. */
export const sourceDescription =
  'directory, image, oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, tar archive, configmap:FILE[#NAME], ' +
  'https://HOST/ARCHIVE[#sha256:HEX] or git+https://HOST/REPOSITORY[#REF[:DIRECTORY]]';

/** Adds the options for where the files of bundles come from. */
export function addContentOptions(command: Command): Command {
  return command
    .option('--require-digest', 'refuse sources without a digest, commit or checksum')
    .option('--lock <file>', 'lock file with pinned sources; created if missing')
    .option('--update-lock', 'with --lock: resolve sources again and update the lock file')
    .option('--secrets <directory>', 'directory with manifests of Secrets')
    .option('--secret <[namespace/]name>', 'with --secrets: Secret for remote sources');
}

/** Adds the option that puts several sources together, for commands of one source. */
export function addComposeOption(command: Command): Command {
  return command.addOption(
    new Option(
      '--add <destination=source>',
      'add the files of another source at a destination, repeatable',
    ).argParser(collect),
  );
}
