import { text } from '../command/flags.js';

/** `--repository` of commands on operator repositories. */
export const repositoryFlag = {
  repository: text('directory', 'root of the operator repository', { default: '.', group: 'Input' }),
};
