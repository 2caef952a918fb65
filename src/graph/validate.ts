import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { throwIfCancelled } from '../core/errors.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import { type ErrorTree, errorLines, joinErrorLines } from '../model/error-tree.js';
import type { CatalogFacts } from '../model/facts.js';
import { SkipRanges } from './skip-ranges.js';
import { CatalogReferences } from './validation/catalog-references.js';
import {
  type CatalogWarning,
  warnOfEmptyCatalog,
  warnOfSimilarSchemas,
} from './validation/catalog-warnings.js';
import type { Steps } from './validation/checked-package.js';
import { Findings } from './validation/findings.js';
import { PackageCheck, addBranch } from './validation/package-check.js';

/** Result of validating a catalog. */
export interface ValidationReport {
  passed: boolean;
  /** Message of `opm validate`, possibly of several lines; undefined if valid. */
  message?: string;
  /** All problems, in order of package, channel, bundle. Empty only for a valid catalog. */
  problems: CatalogDiagnostic<'invalid'>[];
  /** In the same order. */
  warnings: CatalogWarning[];
}

/**
 * Validates a catalog as `opm validate` does, in two stages: references between blobs, which stop at the first error,
 * then each package, channel and bundle, as a tree of all errors. The verdict and `message` are `opm`'s; `problems`
 * has all errors of both stages once, without consequential ones. Where `opm` has a random order, blobs are in their
 * own order. Takes linear time for any graph. (Source: ConvertToModel and model.Validate of operator-registry.)
 */
export function validateCatalog(facts: CatalogFacts): ValidationReport {
  const steps = validateInSteps(facts);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Validates as `validateCatalog`, for servers: yields to the event loop between steps, even within a long channel. */
export async function validateInTurns(
  facts: CatalogFacts,
  { signal }: CancelOptions = {},
): Promise<ValidationReport> {
  throwIfCancelled(signal);
  const steps = validateInSteps(facts);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    const turn = takeTurn();
    if (turn === undefined) continue;
    await turn;
    throwIfCancelled(signal);
  }
}

/** Runs both stages, pausing between steps. */
function* validateInSteps(facts: CatalogFacts): Steps<ValidationReport> {
  const findings = new Findings();
  const packages = yield* new CatalogReferences(findings).check(facts);
  const tree: ErrorTree = { message: 'invalid index', children: [] };
  const ranges = new SkipRanges();
  for (const model of packages.values()) {
    addBranch(tree, yield* new PackageCheck(model, findings, ranges).run());
  }
  findings.warn([...warnOfEmptyCatalog(facts), ...warnOfSimilarSchemas(facts)]);
  const message = findings.fatal ?? (tree.children.length > 0 ? yield* renderInSteps(tree) : undefined);
  const problems = findings.sortedProblems();
  yield;
  const warnings = findings.sortedWarnings();
  return { passed: message === undefined, ...(message !== undefined && { message }), problems, warnings };
}

function* renderInSteps(tree: ErrorTree): Steps<string> {
  const lines: string[] = [];
  for (const line of errorLines(tree)) {
    lines.push(line);
    yield;
  }
  return joinErrorLines(lines);
}
