// A reporter of vitest: ends a run with `--retry=1` with the tests that passed at the second try only, and how they failed before.
export default class SecondTry {
  #passed = [];

  onTestCaseResult(test) {
    if (test.diagnostic()?.flaky === true) this.#passed.push(test);
  }

  onTestRunEnd() {
    for (const test of this.#passed) {
      const errors = (test.result().errors ?? []).map(({ stack, message }) => stack ?? message);
      console.log(`\n RETRY  ${test.module.relativeModuleId} > ${test.fullName}\n${errors.join('\n')}`);
    }
    if (this.#passed.length > 0) console.log('⎯'.repeat(40));
  }
}
