import { setFlagsFromString } from 'node:v8'

/** The flags with which V8 compiles Pyodide. The compiled JavaScript in a snapshot is valid only with the same ones. */
const FLAGS = [
  '--disallow-code-generation-from-strings', // given on the command line, and taken back by main.ts
  '--wasm-lazy-validation', // functions are validated at their first call; most are never called
  // Most of Pyodide's JavaScript runs once, when an instance starts: to optimize it takes longer than to run it.
  '--no-turbofan',
  '--no-maglev', // for good: versions of Node differ in whether they trust this compiler
]

/** V8's own value, in Node 22 and 24: the steps that a function may take before V8 compiles it again, with TurboFan. */
export const STEPS_BEFORE_OPTIMIZING = 13_000_000
/** The steps by which a loop counts at most: a quarter of the value when its function is compiled for the first time. */
const MAX_STEPS_OF_A_LOOP = 64

/** Sets the flags of scripts. All but that of TurboFan stay until the process ends: V8 validates functions as long as the flag is set. */
export function setScriptFlags(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
}

/**
 * Lets functions that are called from now on count fewer steps. A turn of Python's interpreter loop is 100,000 steps, so V8 would
 * optimize it while the instance starts: 80 ms of processor time and 20 MB. Called when WebAssembly has its budgets, before any function
 * of it is compiled. The loop is then optimized once a script has taken about 100,000 turns, a few milliseconds.
 */
export function postponeOptimization(): void {
  setFlagsFromString(`--wasm-tiering-budget=${4 * MAX_STEPS_OF_A_LOOP}`)
}

/** Lets V8 optimize JavaScript from now on: a script may read and write many files. Functions of WebAssembly count all their steps again. */
export function allowOptimization(): void {
  setFlagsFromString('--turbofan')
  setFlagsFromString(`--wasm-tiering-budget=${STEPS_BEFORE_OPTIMIZING}`)
}
