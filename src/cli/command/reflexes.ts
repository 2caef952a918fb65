/**
 * Commands of crane, oras, skopeo, opm and other tools that people type from habit, by group and word, with the words that
 * opmate has for them.
 */
const reflexes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '': {
    hlep: 'help',
    lint: 'validate',
    check: 'validate',
    inspect: 'oci inspect',
    copy: 'oci copy',
    tags: 'oci inspect --tags',
    'list-tags': 'oci inspect --tags',
    push: 'bundle push',
    install: 'deployment apply',
    prune: 'catalog filter',
  },
  bundle: { lint: 'bundle validate', check: 'bundle validate', create: 'bundle generate' },
  catalog: { lint: 'catalog doctor', validate: 'validate', check: 'catalog doctor', render: 'render' },
  oci: {
    ls: 'oci inspect --tags',
    tags: 'oci inspect --tags',
    'list-tags': 'oci inspect --tags',
    repo: 'oci inspect --tags',
    digest: 'oci inspect',
    config: 'oci inspect',
    resolve: 'oci inspect',
    manifest: 'oci inspect --raw',
    cp: 'oci copy',
    pull: 'oci copy',
    push: 'oci copy',
    sync: 'mirror -f',
  },
};

/** Returns the words of the command that a habitual word below a group stands for, without `opmate`. */
export function findReflex(group: readonly string[], word: string): string | undefined {
  const words = reflexes[group.join(' ')];
  return words !== undefined && Object.hasOwn(words, word) ? words[word] : undefined;
}

/** Names of commands that delete or overwrite: suggested for a misspelling in their own group only. */
const destructive: ReadonlySet<string> = new Set([
  'delete',
  'delete-latest',
  'deprecatetruncate',
  'gc',
  'prune',
  'prune-stranded',
  'remove',
  'rm',
  'rm-package',
  'rollback',
]);

/** Reports whether a command of this name deletes or overwrites something. */
export function isDestructive(name: string): boolean {
  return destructive.has(name);
}
