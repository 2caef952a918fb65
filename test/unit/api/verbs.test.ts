import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { CommandTree } from '../../../src/cli/command/tree.js';
import { commands } from '../../../src/cli/tree.js';
import { loadTree } from '../../../src/cli/command/loaded-tree.js';
import * as library from '../../../src/index.js';
import { projectRoot } from '../../support/command-line.js';

/** The functions of the library behind each command. */
const verbs: Readonly<Record<string, readonly string[]>> = {
  render: ['render'],
  validate: ['validate'],
  init: ['createPackage'],
  'generate dockerfile': ['generateDockerfile'],
  migrate: ['migrateCatalog'],
  'list packages': ['listCatalog'],
  'list channels': ['listCatalog'],
  'list bundles': ['listCatalog'],
  graph: ['readFacts', 'drawGraph', 'readDrawnChannels', 'drawSvg'],
  'catalog diff': ['diffCatalogs'],
  'catalog add': ['addToCatalog'],
  'catalog remove': ['removeFromCatalog'],
  'catalog deprecate': ['deprecateInCatalog'],
  'catalog filter': ['filterCatalog'],
  'catalog doctor': ['diagnoseCatalog'],
  'catalog publish': ['publishCatalog'],
  'catalog add-fragment': ['addFragmentsToImage'],
  'catalog add-bundle': ['addBundlesToImage'],
  'catalog merge': ['mergeIndexImages'],
  'catalog rm-package': ['removePackagesFromImage'],
  'catalog lifecycle inject': ['injectLifecycles'],
  'catalog lifecycle check': ['diagnoseCatalog'],
  'catalog lifecycle diff': ['compareLifecycles'],
  'catalog gate': ['gateCatalog'],
  'catalog build': ['buildCatalogImage'],
  'catalog mirror': ['mirrorCatalog'],
  'index add': ['addToIndexImage'],
  'index rm': ['editIndexImage'],
  'index delete': ['editIndexImage'],
  'index delete-latest': ['editIndexImage'],
  'index prune': ['editIndexImage'],
  'index prune-stranded': ['editIndexImage'],
  'index deprecatetruncate': ['editIndexImage'],
  'index build': ['buildIndexImage'],
  'index export': ['exportIndex'],
  'registry build': ['buildIndex'],
  'registry add': ['addToIndex'],
  'registry rm': ['editIndex'],
  'registry delete': ['editIndex'],
  'registry delete-latest': ['editIndex'],
  'registry prune': ['editIndex'],
  'registry prune-stranded': ['editIndex'],
  'registry deprecatetruncate': ['editIndex'],
  'registry create': ['createDatabase'],
  'registry migrate': ['migrateDatabaseFile'],
  'registry init': ['loadManifests'],
  'registry serve': ['serveIndex'],
  'registry images': ['listImages', 'mapCatalogImages', 'writeMirrorManifests'],
  'registry bundles': ['openIndex'],
  'repo render': ['renderRepository'],
  'repo check': ['checkRepository'],
  'repo changes': ['readRepositoryChanges'],
  'repo release': ['releaseBundle'],
  'repo promote': ['promoteCatalog'],
  'repo onboard': ['onboardOperator'],
  'repo status': ['readRepositoryStatus'],
  'cluster predict': ['predictCluster'],
  'cluster explain': ['explainClusterOperator'],
  explain: ['explainClusterOperator'],
  'cluster diff': ['diffPredictions'],
  'cluster upgrade': ['planClusterUpgrade'],
  serve: ['serveCatalog', 'serveCatalogs', 'buildServeCache'],
  view: ['viewCatalog', 'exportCatalogView', 'viewMirror'],
  probe: ['checkServer'],
  'catalogs status': ['readCatalogStatuses'],
  'catalogs wait': ['waitForCatalogs'],
  'catalogs packages': ['listServedPackages'],
  'catalogs metas': ['listServedMetas'],
  'template render': ['renderTemplate'],
  'template convert basic': ['convertToTemplate'],
  'template convert substitutes': ['convertToTemplate'],
  'bundle generate': ['generateBundle'],
  'bundle build': ['buildBundle'],
  'bundle push': ['pushBundle'],
  'bundle validate': ['validateBundle'],
  'bundle unpack': ['unpackBundle'],
  'bundle extract': ['extractBundle'],
  'bundle show': ['showBundle'],
  'bundle render': ['renderBundle', 'writeObjects'],
  'bundle permissions': ['readBundlePermissions'],
  'bundle check-crd-upgrade': ['checkCrdUpgrade'],
  'cluster capture': ['captureClusterFiles', 'captureRunningCluster', 'toSnapshotList'],
  'cluster migrate': ['migrateCluster'],
  'deployment create': ['createDeployment', 'encodeDeployment', 'createDeploymentObjectSet'],
  'deployment plan': ['renderDeployments', 'renderPackage', 'findInstalledBundle', 'planDeployment'],
  'deployment wait': ['waitForDeployment'],
  'deployment status': ['readDeploymentStatus'],
  'deployment delete': ['deleteDeployment'],
  'deployment adopt': [
    'renderDeployments',
    'renderPackage',
    'findInstalledBundle',
    'checkDeployments',
    'applyDeployment',
  ],
  'deployment watch': ['renderDeployments', 'renderPackage', 'findInstalledBundle', 'watchDeployments'],
  'deployment render': ['renderDeployments', 'renderPackage'],
  'deployment diff': ['renderDeployments', 'renderPackage', 'diffRender'],
  'deployment apply': [
    'renderDeployments',
    'renderPackage',
    'findInstalledBundle',
    'checkDeployments',
    'applyDeployment',
    'watchDeployments',
    'pruneDeployments',
  ],
  'deployment history': ['readDeploymentHistory'],
  'deployment rollback': ['rollBackDeployment'],
  'bundle openshift-versions': ['listOpenShiftVersions'],
  'bundle resolve': ['resolveBundle', 'parseNamedCatalog'],
  'bundle successors': ['findSuccessors', 'parseNamedCatalog'],
  mirror: [
    ...['mirrorImageSet', 'archiveImageSet', 'mirrorArchives', 'mapImageSet', 'mapArchives'],
    ...['mirrorMappings', 'readMappings', 'listPrunable', 'pruneMirror'],
  ],
  'mirror plan': ['planMirror'],
  'mirror status': ['findMirrorLock', 'readMirrorStatus'],
  'mirror diff': ['diffNamedLocks'],
  'mirror inventory': ['readMirrorInventory'],
  'mirror capture': ['captureImageSet'],
  'mirror delete': ['listMirrorDeletions', 'writeDeleteList', 'deleteMirrored'],
  'mirror schedule': ['scheduleMirror'],
  'mirror list operators': ['listCatalogOperators', 'listDefaultCatalogs'],
  'mirror list releases': ['listReleaseVersions', 'listReleaseChannels', 'listChannelReleases'],
  'archive verify': ['verifyArchive'],
  verify: ['verifyImages'],
  'oci serve': ['startRegistry'],
  'oci gc': ['collectGarbage'],
  'oci copy': ['copyReference'],
  'oci inspect': ['inspectImage', 'listTags', 'readManifest'],
};

/** Commands about the command line itself. */
const own: readonly string[] = ['version', 'licenses', 'completion', '__complete', 'help'];

const { program } = await loadTree();

function leavesBelow(command: Command, words: readonly string[]): string[] {
  const below = command.commands.flatMap((sub) => leavesBelow(sub, [...words, sub.name()]));
  const runs = command.commands.length === 0 || words[0] === 'mirror';
  return runs && words.length > 0 && !(words[0] === 'mirror' && words[1] === 'list' && words.length === 2)
    ? [words.join(' '), ...below]
    : below;
}

/** Names that modules of `cli` import from other rooms, by the modules that a command's module leads to. */
function importedBy(file: string, seen = new Set<string>()): Set<string> {
  const names = new Set<string>();
  if (seen.has(file)) return names;
  seen.add(file);
  const text = readFileSync(file, 'utf8');
  const imports =
    /(?:import (?!type )\{([^}]*)\} from '([^']+)')|(?:\{([^{}]*)\}[^;{}]*import\('([^']+)'\))/g;
  for (const [, statically, from, dynamically, lazily] of text.matchAll(imports)) {
    const target = path.resolve(path.dirname(file), from ?? lazily ?? '').replace(/\.js$/, '.ts');
    if ((from ?? lazily)?.startsWith('.') === true && target.includes('/src/cli/'))
      for (const name of importedBy(target, seen)) names.add(name);
    else for (const name of (statically ?? dynamically ?? '').split(',')) names.add(name.trim());
  }
  return names;
}

/** Module of each command of the tree, by the words of its name. */
function modulesBelow(tree: CommandTree, words: readonly string[] = []): [string, string][] {
  return Object.entries(tree).flatMap(([word, { load, commands: below = {} }]) => {
    const name = [...words, word];
    const [, module] = /cli\/([\w/-]+)\.[jt]s|["'`]\.\/([\w/-]+)\.js/.exec(String(load ?? '')) ?? [];
    const found = module ?? /["'`]\.\/([\w/-]+)\.js/.exec(String(load ?? ''))?.[1];
    const own: [string, string][] = found === undefined ? [] : [[name.join(' '), found]];
    return [...own, ...modulesBelow(below, name)];
  });
}

describe('the library', () => {
  const leaves = leavesBelow(program, []).filter(
    (name) => !/^(?:alpha|bundle deployment) /.test(name) && !own.includes(name),
  );

  it('has functions for every command', () => {
    expect(leaves.sort()).toEqual(Object.keys(verbs).sort());
    const missing = Object.values(verbs)
      .flat()
      .filter((name) => (library as Record<string, unknown>)[name] === undefined);
    expect(missing).toEqual([]);
  });

  it('does the work of the commands: their modules import its functions', () => {
    const modules = new Map(modulesBelow(commands));
    const others = Object.entries(verbs).filter(([name, functions]) => {
      const module = modules.get(name);
      if (module === undefined) return true;
      const imported = importedBy(path.join(projectRoot, 'src', 'cli', `${module}.ts`));
      return !functions.every((verb) => imported.has(verb));
    });
    expect(others.map(([name]) => name)).toEqual([]);
  });

  it('never prints: only cli writes to the streams of the process', () => {
    const printing = readdirSync(path.join(projectRoot, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('cli'))
      .filter((name) =>
        /\bconsole\.\w+\(|process\.(?:stdout|stderr|exit\b)/.test(
          readFileSync(path.join(projectRoot, 'src', name), 'utf8'),
        ),
      );
    expect(printing).toEqual([]);
  });
});
