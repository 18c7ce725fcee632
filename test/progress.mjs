// A Jest reporter beside the default one, which is silent until a whole file is through: one line per test as it ends.

export default class Progress {
  /** @param {{ path: string }} _file @param {{ title: string, status: string, duration?: number | null }} result */
  onTestCaseResult(_file, result) {
    const seconds = ((result.duration ?? 0) / 1000).toFixed(1).padStart(6);
    process.stdout.write(`  ${result.status === 'passed' ? 'ok    ' : 'FAILED'} ${seconds} s  ${result.title}\n`);
  }
}
