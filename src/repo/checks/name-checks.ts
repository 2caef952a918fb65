import { quoteGo } from '../../core/go-json-quote.js';
import { OpmateError } from '../../core/errors.js';
import { joinNames } from '../../core/suggest.js';
import { sortedByBytes } from '../../core/order.js';
import { bundleKeys } from '../../model/bundle-keys.js';
import { type CheckedBundle, getPackageName } from './bundle-model.js';
import { type Check, type CheckedOperator, type ReportFinding, placeIn } from './check.js';

/** Compares the package of a bundle with its ClusterServiceVersion, its directory and other bundles. */
function checkOperatorName(bundle: CheckedBundle, operator: CheckedOperator, report: ReportFinding): void {
  const { annotations } = bundle;
  const packagePlace = placeIn(annotations, ['annotations', bundleKeys.package]);
  const packageName = getPackageName(bundle);
  if (packageName === '') {
    const hint = `add the annotation ${bundleKeys.package}`;
    report('error', 'the package is missing', { ...packagePlace, hint });
    return;
  }
  const csvName = readName(bundle, report);
  if (csvName === undefined) return;
  const others = operator.bundles.filter(({ version }) => version !== bundle.version);
  const isFirst = others.length === 0;
  compareWithOthers('package', packageName, others.map(getPackageName), report, packagePlace);
  const csvPlace = placeIn(bundle.getCsv(), ['metadata', 'name']);
  const names = others.map((other) => other.getCsvName().name);
  compareWithOthers('name of the ClusterServiceVersion', csvName, names, report, csvPlace);
  const severity = isFirst ? 'error' : 'warning';
  if (packageName !== csvName) {
    const problem = `package ${quoteGo(packageName)} differs from the name of the ClusterServiceVersion, ${quoteGo(csvName)}`;
    report(severity, problem, { ...packagePlace, hint: 'use one name for both' });
  }
  if (packageName !== operator.name) {
    const problem = `package ${quoteGo(packageName)} differs from the directory of the operator, ${quoteGo(operator.name)}`;
    report(severity, problem, { ...packagePlace, hint: 'use one name for both' });
  }
}

function readName(bundle: CheckedBundle, report: ReportFinding): string | undefined {
  try {
    return bundle.getCsvName().name;
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const { problem, file, line } = error;
    report('error', problem, { file, line, hint: 'use a name of the form NAME.vVERSION' });
    return undefined;
  }
}

function compareWithOthers(
  what: string,
  name: string,
  others: readonly string[],
  report: ReportFinding,
  place: ReturnType<typeof placeIn>,
): void {
  const names = sortedByBytes(new Set(others.filter((other) => other !== '')));
  if (names.length > 1)
    report('warning', `other bundles disagree about the ${what}: ${joinNames(names)}`, place);
  else if (names.length === 1 && names[0] !== name) {
    const problem = `${what} ${quoteGo(name)} differs from other bundles, which have ${quoteGo(names[0] as string)}`;
    report('error', problem, { ...place, hint: `use ${quoteGo(names[0] as string)}` });
  }
}

function checkOperatorNameUnique(operator: CheckedOperator, report: ReportFinding): void {
  const names = new Set(operator.bundles.map((bundle) => bundle.getCsvName().name));
  if (names.size <= 1) return;
  const problem = `bundles have several operator names: ${joinNames(sortedByBytes(names))}`;
  report('error', problem, { file: operator.directory, hint: 'use one name in all ClusterServiceVersions' });
}

export const nameChecks: readonly Check[] = [
  {
    name: 'check_operator_name',
    suite: 'common',
    summary: 'package, ClusterServiceVersion, directory and other bundles have one name',
    of: 'bundle',
    run: checkOperatorName,
  },
  {
    name: 'check_operator_name_unique',
    suite: 'community',
    summary: 'all bundles of an operator have one name',
    skipsFbc: true,
    of: 'operator',
    run: checkOperatorNameUnique,
  },
];
