import { readFileSync } from 'node:fs'

/** One problem of the data set, as its file has it. */
interface Problem {
  readonly task_id: string
  readonly prompt: string
  readonly entry_point: string
  readonly canonical_solution: string
  readonly test: string
}

/** One line for `sandglass batch`. */
export interface Request {
  readonly id: string
  readonly script: string
  readonly mode: 'plan'
  readonly timeout_s: number
}

/** Every problem as a script: the solution, its test, and a result when the test passes. */
export function readRequests(path: URL): Request[] {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const problem = JSON.parse(line) as Problem
    const { task_id: id, prompt, canonical_solution: solution, test, entry_point: name } = problem
    return {
      id,
      script: `${prompt}${solution}\n${test}\ncheck(${name})\nemit_result(True)\n`,
      mode: 'plan',
      timeout_s: 30,
    }
  })
}
