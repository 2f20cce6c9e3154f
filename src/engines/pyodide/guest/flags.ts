import { setFlagsFromString } from 'node:v8'

/** The flags with which V8 compiles Pyodide. The compiled JavaScript in a snapshot is valid only with the same ones. */
const FLAGS = [
  '--disallow-code-generation-from-strings', // given on the command line, and taken back by main.ts
  '--wasm-lazy-validation', // functions are validated at their first call; most are never called
  // Most of Pyodide's JavaScript runs once, when an instance starts: to optimize it takes longer than to run it.
  '--no-turbofan',
  '--no-maglev', // for good: versions of Node differ in whether they trust this compiler
]

/** Sets the flags of scripts. All but that of TurboFan stay until the process ends: V8 validates functions as long as the flag is set. */
export function setScriptFlags(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
}

/** Lets V8 optimize JavaScript from now on: a script may read and write many files. */
export function allowOptimization(): void {
  setFlagsFromString('--turbofan')
}
