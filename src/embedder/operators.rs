//! Supported ONNX operators. Leaving out the others keeps the program small.

use rten::OpRegistry;

/// Operators of the built-in model and of exported models with the same kind of tokenizer (BERT,
/// `DistilBERT`, `MiniLM`, `MPNet`), in float or 8 bits, with or without pooling.
pub(crate) fn operators() -> OpRegistry {
    rten::op_registry!(
        Abs, Add, And, Cast, Clip, Concat, ConstantOfShape, DequantizeLinear, Div,
        DynamicQuantizeLinear, Equal, Erf, Expand, Gather, Gelu, Gemm, Identity, IsNaN,
        LayerNormalization, Less, Log, MatMul, MatMulInteger, Min, Mul, Neg, Not, Or, Pow,
        QuantizeLinear, Range, ReduceL2, ReduceMean, ReduceSum, Reshape, Shape, Slice, Softmax,
        Sqrt, Squeeze, Sub, Tanh, Transpose, Unsqueeze, Where
    )
}
