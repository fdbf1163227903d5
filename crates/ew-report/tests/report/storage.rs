//! Tables of storage runs.

use crate::browser::pages::fabric;
use crate::prometheus::written;

#[test]
fn names_in_the_csv_are_no_formulas() {
    let (topology, scenario) = (
        fabric(1, 2),
        "name: x\ntests: [{name: x, pattern: permutation}]",
    );
    let scenario = ew_plan::scenario::parse(scenario, "x.yaml", &[]).unwrap();
    let plan = ew_plan::plan(&scenario, &ew_sim::inventory(&topology), 1).unwrap();
    let mut run = ew_sim::simulate(&topology, &plan, 1, &ew_sim::Noise::default());
    run.manifest.inventory.hosts[0].name = "=1+1".into();
    let mut step = written();
    step.data_node_of_file = Some(vec![(0, "@dn,1".into())]);
    run.storage = vec![step];
    let csv = ew_report::storage_csv(&run);
    let lines: Vec<&str> = csv.lines().collect();
    let first = "0,write,'=1+1,0,0,0,0,1,500000000,0,1000000,done,\"'@dn,1\"";
    assert_eq!(
        lines[1..],
        [
            first,
            "0,write,'=1+1,1,0,0,0,1,500000000,0,1000000,failed,-"
        ]
    );
}
