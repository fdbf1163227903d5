//! The logarithm of the gamma function.

/// Lanczos' approximation, to 2e-10 (Numerical Recipes, section 6.1); of positive numbers.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let base = x + 5.5;
    let front = (x + 0.5) * base.ln() - base;
    let terms = COEFFICIENTS.iter().zip(1u32..);
    let series = terms.fold(1.000_000_000_190_015, |sum, (c, i)| {
        sum + c / (x + f64::from(i))
    });
    front + (2.506_628_274_631_000_5 * series / x).ln()
}
