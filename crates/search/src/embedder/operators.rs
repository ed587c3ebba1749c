//! Supported ONNX operators. Leaving out the others keeps the program small.

use rten::OpRegistry;

/// Operators of the built-in model.
pub fn operators() -> OpRegistry {
    rten::op_registry!(
        Add, Cast, Div, DynamicQuantizeLinear, Erf, Gather, LayerNormalization, MatMul,
        MatMulInteger, Mul, ReduceSum, Reshape, Shape, Slice, Softmax, Sub, Transpose, Unsqueeze
    )
}
