/** What vitest is given for the suite on some engines: their folders and their files of fresh attacks; default: all. */
export function filesOf(engines?: readonly string[]): string[] {
  if (engines === undefined) return ['test/adversarial/']
  return engines.flatMap((engine) => [`test/adversarial/${engine}/`, `test/adversarial/fresh/${engine}.test.ts`])
}
