export { Redactor, type TextRedactor } from './redactor.ts'
