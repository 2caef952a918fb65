import { formatPath } from '../../core/diagnostic.js';
import { DiagnosticList } from '../../document/document.js';
import { quoteGo } from '../../document/go-json.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { findHead } from '../../graph/channel-graph.js';
import type { PackageModel } from '../../graph/package-model.js';
import { type Lifecycle, readLifecycle } from '../../model/lifecycle.js';
import type { BlobOrigin } from '../../model/facts.js';
import type { Meta } from '../meta.js';
import type { FindingList } from './finding-list.js';

/** Examines lifecycle blobs: each alone, then against the packages of the catalog. */
export function createLifecycleCheck(findings: FindingList): {
  add: (meta: Meta) => void;
  finish: (
    packages: ReadonlyMap<string, PackageModel>,
    options?: { requireLifecycles?: boolean | undefined },
  ) => void;
} {
  const lifecycles = new Map<string, { lifecycle: Lifecycle; origin: BlobOrigin }>();

  const add = ({ value, origin }: Meta): void => {
    if (!findings.wants('lifecycle')) return;
    const diagnostics = new DiagnosticList();
    const lifecycle = readLifecycle(value, diagnostics);
    const subject = { package: lifecycle.package, origin };
    for (const { path = [], problem, hint = '' } of diagnostics.all) {
      const message = `lifecycle: ${formatPath(path)}: ${problem}`;
      findings.add('lifecycle', { ...subject, path }, message, hint);
    }
    if (lifecycle.package === '') return;
    if (lifecycles.has(lifecycle.package)) {
      findings.add('lifecycle', subject, 'has more than one lifecycle blob', 'keep one of them');
    } else lifecycles.set(lifecycle.package, { lifecycle, origin });
  };

  const finish = (
    packages: ReadonlyMap<string, PackageModel>,
    { requireLifecycles = false }: { requireLifecycles?: boolean | undefined } = {},
  ): void => {
    for (const [name, { facts }] of requireLifecycles ? packages : []) {
      if (lifecycles.has(name)) continue;
      const subject = { package: name, origin: facts?.origin };
      findings.add('lifecycle', subject, 'has no lifecycle blob', 'add one');
    }
    for (const [name, { lifecycle, origin }] of lifecycles) {
      const model = packages.get(name);
      if (model === undefined) {
        const hint = 'remove the blob, or fix its package';
        const subject = { package: name, origin, path: ['package'] };
        findings.add('lifecycle', subject, 'has a lifecycle blob, but is not in the catalog', hint);
        continue;
      }
      const known = new Set(lifecycle.versions.map((version) => version.name));
      const missing = new Set<string>();
      for (const { entries } of model.channels.values()) {
        const version = readBundleVersion(model.bundles.get(findHead(entries)));
        const minor = version && `${version.major}.${version.minor}`;
        if (minor === undefined || known.has(minor) || missing.has(minor)) continue;
        missing.add(minor);
        const subject = { package: name, bundle: findHead(entries), origin, path: ['versions'] };
        const problem = `its lifecycle does not list version ${quoteGo(minor)}, that of a channel head`;
        findings.add('lifecycle', subject, problem, `add version ${minor} to the lifecycle`, 'notice');
      }
    }
  };
  return { add, finish };
}
