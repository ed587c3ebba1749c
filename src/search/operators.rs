//! What networks may be made of; leaving the others out keeps the program small.

use rten::OpRegistry;

/// The operators of the built-in model, and of what exporters make of models with its kind of
/// tokenizer (BERT, `DistilBERT`, `MiniLM`, `MPNet`), in float or 8 bits, pooled inside or not.
pub(super) fn operators() -> OpRegistry {
    rten::op_registry!(
        Abs, Add, And, Cast, Clip, Concat, ConstantOfShape, DequantizeLinear, Div,
        DynamicQuantizeLinear, Equal, Erf, Expand, Gather, Gelu, Gemm, Identity, IsNaN,
        LayerNormalization, Less, Log, MatMul, MatMulInteger, Min, Mul, Neg, Not, Or, Pow,
        QuantizeLinear, Range, ReduceL2, ReduceMean, ReduceSum, Reshape, Shape, Slice, Softmax,
        Sqrt, Squeeze, Sub, Tanh, Transpose, Unsqueeze, Where
    )
}
