import type { AnyCommand } from './command/declaration.js';
import { type CommandTree, group, leaf } from './command/tree.js';

const list: CommandTree = {
  packages: leaf(() => import('./list/packages.js')),
  channels: leaf(() => import('./list/channels.js')),
  bundles: leaf(() => import('./list/bundles.js')),
};

const convert: CommandTree = {
  basic: leaf(async () => ({ command: (await import('./template/convert.js')).basic })),
  substitutes: leaf(async () => ({ command: (await import('./template/convert.js')).substitutes })),
};

const deployment: CommandTree = {
  create: leaf(() => import('./deployment/create.js')),
  render: leaf(() => import('./deployment/render.js')),
  diff: leaf(() => import('./deployment/diff.js')),
  plan: leaf(() => import('./deployment/plan.js')),
  apply: leaf(() => import('./deployment/apply.js')),
  wait: leaf(() => import('./deployment/wait.js')),
  status: leaf(() => import('./deployment/status.js')),
  history: leaf(() => import('./deployment/history.js')),
  rollback: leaf(() => import('./deployment/rollback.js')),
  adopt: leaf(() => import('./deployment/adopt.js')),
  delete: leaf(() => import('./deployment/delete.js')),
  watch: leaf(() => import('./deployment/watch.js')),
};

const lifecycle: CommandTree = {
  inject: leaf(() => import('./lifecycle/inject.js')),
  check: leaf(() => import('./lifecycle/check.js')),
  diff: leaf(() => import('./lifecycle/diff.js')),
};

const bundle = {
  generate: leaf(() => import('./bundle/generate.js')),
  build: leaf(() => import('./bundle/build.js')),
  push: leaf(() => import('./bundle/push.js')),
  validate: leaf(() => import('./bundle/validate.js')),
  unpack: leaf(() => import('./bundle/unpack.js')),
  extract: leaf(() => import('./bundle/extract.js')),
  show: leaf(() => import('./bundle/show.js')),
  render: leaf(() => import('./bundle/render.js')),
  permissions: leaf(() => import('./bundle/permissions.js')),
  'check-crd-upgrade': leaf(() => import('./bundle/check-crd-upgrade.js')),
  // The name of `opmate deployment` until it became a noun.
  deployment: group('install, upgrade and remove operators on a cluster', deployment, {
    hidden: true,
    exampleOf: ['plan', 'apply'],
  }),
  resolve: leaf(() => import('./bundle/resolve.js')),
  successors: leaf(() => import('./bundle/successors.js')),
  'openshift-versions': leaf(() => import('./bundle/openshift-versions.js')),
};

/** Returns commands with the exit codes of `opm`, which has them too. */
const ofOpm = (tree: CommandTree): CommandTree =>
  Object.fromEntries(Object.entries(tree).map(([name, node]) => [name, { ...node, tool: 'opm' }]));

const { generate, build, validate, unpack, extract } = bundle;

/** Returns the command of an edit of sqlite indexes that changes a database instead of an image. */
const ofRegistry = ({ registryCommand }: { registryCommand: AnyCommand }): { command: AnyCommand } => ({
  command: registryCommand,
});

/** All commands by name, loaded lazily. */
export const commands: CommandTree = {
  render: leaf(() => import('./root/render.js'), { helpGroup: 'Catalogs' }),
  validate: leaf(() => import('./root/validate.js'), { helpGroup: 'Catalogs' }),
  init: leaf(() => import('./root/init.js'), { helpGroup: 'Catalogs' }),
  migrate: leaf(() => import('./root/migrate.js'), { helpGroup: 'Catalogs' }),
  generate: group(
    'generate files for a catalog',
    { dockerfile: leaf(() => import('./root/generate-dockerfile.js')) },
    { tool: 'opm', helpGroup: 'Catalogs', exampleOf: ['dockerfile'] },
  ),
  list: group('list packages, channels or bundles of a catalog', list, {
    referenceCommand: 'packages',
    helpGroup: 'Catalogs',
    exampleOf: ['packages', 'channels', 'bundles'],
  }),
  graph: leaf(() => import('./root/graph.js'), { helpGroup: 'Catalogs' }),
  catalog: group(
    'edit, check, compare, filter, build and publish catalogs',
    {
      diff: leaf(() => import('./catalog/diff.js')),
      build: leaf(() => import('./catalog/build.js')),
      add: leaf(() => import('./catalog/add.js')),
      remove: leaf(() => import('./catalog/remove.js')),
      deprecate: leaf(() => import('./catalog/deprecate.js')),
      filter: leaf(() => import('./catalog/filter.js'), { aliases: ['prune'] }),
      doctor: leaf(() => import('./catalog/doctor.js')),
      gate: leaf(() => import('./catalog/gate.js')),
      'add-fragment': leaf(() => import('./catalog/add-fragment.js')),
      'add-bundle': leaf(() => import('./catalog/add-bundle.js')),
      merge: leaf(() => import('./catalog/merge.js')),
      'rm-package': leaf(() => import('./catalog/rm-package.js')),
      lifecycle: group('add, check and compare lifecycle blobs of OpenShift', lifecycle, {
        exampleOf: ['inject', 'check'],
      }),
      publish: leaf(() => import('./catalog/publish.js')),
      mirror: leaf(() => import('./mirror/catalog-mirror.js')),
    },
    { tool: 'oc', helpGroup: 'Catalogs', exampleOf: ['doctor', 'diff', 'filter', 'build'] },
  ),
  template: group(
    'render and create catalog templates',
    {
      render: leaf(() => import('./template/render.js')),
      convert: group('create a template from a catalog', convert, { exampleOf: ['basic', 'substitutes'] }),
    },
    { helpGroup: 'Catalogs', exampleOf: ['render', 'convert basic'] },
  ),
  view: leaf(() => import('./root/view.js'), { helpGroup: 'Catalogs' }),
  repo: group(
    'render and check repositories of operators',
    {
      render: leaf(() => import('./repo/render.js')),
      check: leaf(() => import('./repo/check.js')),
      changes: leaf(() => import('./repo/changes.js')),
      release: leaf(() => import('./repo/release.js')),
      promote: leaf(() => import('./repo/promote.js')),
      onboard: leaf(() => import('./repo/onboard.js')),
      status: leaf(() => import('./repo/status.js')),
    },
    { helpGroup: 'Catalogs', exampleOf: ['render', 'check', 'release', 'promote'] },
  ),
  cluster: group(
    'predict and plan what OLM does on a cluster',
    {
      predict: leaf(() => import('./cluster/predict.js')),
      explain: leaf(() => import('./cluster/explain.js')),
      diff: leaf(() => import('./cluster/diff.js')),
      upgrade: leaf(() => import('./cluster/upgrade.js')),
      migrate: leaf(() => import('./cluster/migrate.js')),
      capture: leaf(() => import('./cluster/capture.js')),
    },
    { helpGroup: 'Clusters', exampleOf: ['predict', 'upgrade'] },
  ),
  bundle: group('build, check, render and install bundles', bundle, {
    helpGroup: 'Bundles',
    exampleOf: ['validate', 'build', 'permissions', 'resolve'],
  }),
  deployment: group('install, upgrade and remove operators on a cluster', deployment, {
    helpGroup: 'Bundles',
    exampleOf: ['plan', 'apply', 'status', 'delete'],
  }),
  mirror: group(
    'mirror images, catalogs and image sets',
    {
      plan: leaf(() => import('./mirror/plan.js')),
      status: leaf(() => import('./mirror/status.js')),
      diff: leaf(() => import('./mirror/diff.js')),
      inventory: leaf(() => import('./mirror/inventory.js')),
      capture: leaf(() => import('./mirror/capture.js')),
      delete: leaf(() => import('./mirror/delete.js')),
      schedule: leaf(() => import('./mirror/schedule.js')),
      list: group(
        'list what can be mirrored',
        {
          operators: leaf(() => import('./mirror/list-operators.js')),
          releases: leaf(() => import('./mirror/list-releases.js')),
        },
        { tool: 'oc-mirror', exampleOf: ['operators', 'releases'] },
      ),
    },
    { tool: 'oc-mirror', load: () => import('./mirror/mirror.js'), helpGroup: 'Mirroring and images' },
  ),
  archive: group(
    'work with mirror archives on disk',
    {
      verify: leaf(() => import('./archive/verify.js')),
    },
    { helpGroup: 'Mirroring and images', exampleOf: ['verify'] },
  ),
  verify: leaf(() => import('./root/verify.js'), { helpGroup: 'Mirroring and images' }),
  oci: group(
    'work with images, layouts and registries',
    {
      serve: leaf(() => import('./oci/serve.js')),
      gc: leaf(() => import('./oci/gc.js')),
      copy: leaf(() => import('./oci/copy.js')),
      inspect: leaf(() => import('./oci/inspect.js')),
    },
    { helpGroup: 'Mirroring and images', exampleOf: ['copy', 'inspect', 'serve'] },
  ),
  serve: leaf(() => import('./root/serve.js'), { helpGroup: 'Serving' }),
  catalogs: group(
    'query a server started with opmate serve --catalogs',
    {
      status: leaf(() => import('./catalogs/status.js')),
      wait: leaf(() => import('./catalogs/wait.js')),
      packages: leaf(() => import('./catalogs/packages.js')),
      metas: leaf(() => import('./catalogs/metas.js'), { aliases: ['list'] }),
    },
    { helpGroup: 'Serving', exampleOf: ['status', 'wait', 'packages'] },
  ),
  probe: leaf(() => import('./root/probe.js'), { helpGroup: 'Serving' }),
  registry: group(
    'build, edit and query sqlite indexes',
    {
      add: leaf(() => import('./index/add.js').then(ofRegistry)),
      rm: leaf(() => import('./index/rm.js').then(ofRegistry)),
      delete: leaf(() => import('./index/delete.js').then(ofRegistry)),
      'delete-latest': leaf(async () => ({
        command: (await import('./index/delete.js')).registryDeleteLatest,
      })),
      prune: leaf(() => import('./index/prune.js').then(ofRegistry)),
      'prune-stranded': leaf(() => import('./index/prune-stranded.js').then(ofRegistry)),
      deprecatetruncate: leaf(() => import('./index/deprecatetruncate.js').then(ofRegistry)),
      create: leaf(() => import('./registry/create.js')),
      migrate: leaf(() => import('./registry/migrate.js')),
      init: leaf(() => import('./registry/init.js')),
      build: leaf(() => import('./registry/build.js')),
      serve: leaf(() => import('./registry/serve.js')),
      images: leaf(() => import('./registry/images.js')),
      bundles: leaf(() => import('./registry/bundles.js')),
    },
    { tool: 'opm', helpGroup: 'Sqlite indexes', exampleOf: ['add', 'prune', 'serve'] },
  ),
  index: group(
    'build and edit images of sqlite indexes',
    {
      add: leaf(() => import('./index/add.js')),
      rm: leaf(() => import('./index/rm.js')),
      delete: leaf(() => import('./index/delete.js')),
      'delete-latest': leaf(async () => ({
        command: (await import('./index/delete.js')).deleteLatestCommand,
      })),
      prune: leaf(() => import('./index/prune.js')),
      'prune-stranded': leaf(() => import('./index/prune-stranded.js')),
      deprecatetruncate: leaf(() => import('./index/deprecatetruncate.js')),
      build: leaf(() => import('./index/build.js')),
      export: leaf(() => import('./index/export.js')),
    },
    { tool: 'opm', helpGroup: 'Sqlite indexes', exampleOf: ['add', 'prune', 'export'] },
  ),
  version: leaf(() => import('./root/version.js'), { helpGroup: 'Other' }),
  licenses: leaf(() => import('./root/licenses.js'), { helpGroup: 'Other' }),
  completion: leaf(() => import('./completion/completion.js'), { helpGroup: 'Other' }),
  alpha: group(
    'alpha commands of opm',
    {
      list: group('list packages, channels or bundles of a catalog', ofOpm(list), {
        tool: 'opm',
        referenceCommand: 'packages',
      }),
      'render-graph': leaf(() => import('./root/graph.js'), { tool: 'opm' }),
      'render-template': leaf(() => import('./template/render.js'), {
        tool: 'opm',
        aliases: ['render-veneer'],
      }),
      'convert-template': group('create a template from a catalog', ofOpm(convert), {
        tool: 'opm',
      }),
      bundle: group(
        'build, check, render and install bundles',
        ofOpm({ generate, build, validate, unpack, extract }),
        {
          tool: 'opm',
        },
      ),
    },
    { hidden: 'alpha', tool: 'opm' },
  ),
  explain: leaf(() => import('./cluster/explain.js'), { hidden: true }),
  __complete: leaf(() => import('./completion/complete.js'), { hidden: true }),
};
