import { text } from '../command/flags.js';

/** Flags of commands that read an archive. */
export const archiveProofFlags = {
  id: text('digest', 'require this archive ID', { group: 'Input' }),
  verifyKey: text('file', 'require a signature by this public key', { group: 'Input' }),
};
