//! What networks may be made of; leaving the others out keeps the program small.

use rten::OpRegistry;

/// The operators of the built-in model, and of what exporters make of BERT and its kin: of their
/// 8-bit and their float forms, with positions counted or rotated, pooled inside or not. Images,
/// sound, sequences and generation are left out.
pub(super) fn operators() -> OpRegistry {
    rten::op_registry!(
        Abs, Add, And, Cast, CastLike, Ceil, Clip, Concat, ConstantOfShape, Cos, CumSum,
        DequantizeLinear, Div, DynamicQuantizeLinear, Einsum, Equal, Erf, Exp, Expand, Flatten,
        Floor, Gather, GatherElements, GatherND, Gelu, Gemm, Greater, GreaterOrEqual, Identity,
        IsNaN, LayerNormalization, Less, LessOrEqual, Log, MatMul, MatMulInteger, Max, Min, Mod,
        Mul, Neg, NonZero, Not, Or, Pad, Pow, QuantizeLinear, Range, Reciprocal, ReduceL2,
        ReduceMax, ReduceMean, ReduceMin, ReduceSum, ReduceSumSquare, Relu, Reshape,
        RotaryEmbedding, ScatterND, Shape, Sigmoid, Sign, Sin, Size, Slice, Softmax, Split, Sqrt,
        Squeeze, Sub, Tanh, Tile, Transpose, Trilu, Unsqueeze, Where, Xor
    )
}
