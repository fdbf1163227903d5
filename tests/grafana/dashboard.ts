import type {
  AnnotationQuery,
  Dashboard,
  VariableModel,
} from './node_modules/@grafana/schema/dist/types/raw/dashboard/x/types.gen';

// JSON has words where TypeScript has enums.
type Json<T> = T extends string
  ? `${T}`
  : T extends object
    ? { [K in keyof T]: Json<T[K]> }
    : T;

// The schema leaves what belongs to a data source to it: Prometheus' annotations and variables have these.
type Annotation = Json<AnnotationQuery> & {
  expr?: string;
  step?: string;
  tagKeys?: string;
  textFormat?: string;
  titleFormat?: string;
  useValueForTime?: boolean;
};
type Variable = Json<VariableModel> & { definition?: string };

type AsExported = Omit<Json<Dashboard>, 'annotations' | 'templating'> & {
  annotations: { list: Annotation[] };
  templating: { list: Variable[] };
};
