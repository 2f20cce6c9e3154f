/** Suites outside this campaign that a full run adds for each engine. */
const OTHER_SUITES: Readonly<Record<string, readonly string[]>> = {
  local: ['test/sandbox/conformance/local.test.ts', 'test/sandbox/tools/', 'test/sandbox/orchestrator/'],
  docker: ['test/daemon/conformance/', 'test/daemon/tools/', 'test/daemon/orchestrator/'],
  pyodide: ['test/sandbox/conformance/pyodide.test.ts', 'test/sandbox/conformance/pyodide-box.test.ts'],
}

/** Returns the test files and folders that vitest runs for these engines. Default: all engines. */
export function filesOf(
  engines?: readonly string[],
  { withOthers = false }: { readonly withOthers?: boolean } = {},
): string[] {
  const attacks = engines?.map((engine) => `test/campaign/adversarial/${engine}/`) ?? ['test/campaign/adversarial/']
  const others = (engines ?? Object.keys(OTHER_SUITES)).flatMap((engine) => OTHER_SUITES[engine] ?? [])
  return withOthers ? [...attacks, ...others] : attacks
}
