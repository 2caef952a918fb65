import { type CommandTree, group, leaf } from './command/tree.js';

const list = (traits: { tool?: 'opm' } = {}): CommandTree => ({
  packages: leaf(() => import('./list/packages.js'), traits),
  channels: leaf(() => import('./list/channels.js'), traits),
  bundles: leaf(() => import('./list/bundles.js'), traits),
});

/** Every command of opmate by name; its module is loaded when it is named. */
export const commands: CommandTree = {
  render: leaf(() => import('./root/render.js')),
  validate: leaf(() => import('./root/validate.js')),
  init: leaf(() => import('./root/init.js')),
  migrate: leaf(() => import('./root/migrate.js')),
  generate: group(
    'generate files for a catalog',
    { dockerfile: leaf(() => import('./root/generate-dockerfile.js')) },
    { tool: 'opm' },
  ),
  list: group('list packages, channels or bundles of a catalog', list()),
  graph: leaf(() => import('./root/graph.js')),
  alpha: group(
    'alpha commands of opm',
    {
      list: group('list packages, channels or bundles of a catalog', list({ tool: 'opm' }), { tool: 'opm' }),
      'render-graph': leaf(async () => ({ command: (await import('./root/graph.js')).alphaCommand })),
    },
    { hidden: 'alpha', tool: 'opm' },
  ),
  catalog: group(
    'edit, check, compare, filter and build catalogs',
    {
      diff: leaf(() => import('./catalog/diff.js')),
      build: leaf(() => import('./catalog/build.js')),
      add: leaf(() => import('./catalog/add.js')),
      remove: leaf(() => import('./catalog/remove.js')),
      deprecate: leaf(() => import('./catalog/deprecate.js')),
      filter: leaf(() => import('./catalog/filter.js'), { aliases: ['prune'] }),
      doctor: leaf(() => import('./catalog/doctor.js')),
    },
    { tool: 'oc' },
  ),
  archive: group('work with mirror archives on disk', {
    verify: leaf(() => import('./archive/verify.js')),
  }),
  probe: leaf(() => import('./root/probe.js')),
  view: leaf(() => import('./root/view.js')),
  oci: group('work with images, layouts and registries', {
    serve: leaf(() => import('./oci/serve.js')),
    gc: leaf(() => import('./oci/gc.js')),
    copy: leaf(() => import('./oci/copy.js')),
    inspect: leaf(() => import('./oci/inspect.js')),
  }),
  version: leaf(() => import('./root/version.js')),
  completion: leaf(() => import('./completion/completion.js')),
  __complete: leaf(() => import('./completion/complete.js'), { hidden: true }),
};
