export { Redactor, type SecretSearch, type TextRedactor } from './redactor.ts'
